//! The codes: stable words, what each means, and the next step.
//!
//! Owns: the table from which `explain` and docs/diagnostics.md are made. A word is never given
//! another meaning and never used again once retired.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Status;

macro_rules! codes {
    ($($name:ident, $word:literal, $status:ident, $meaning:literal, $hint:expr;)*) => {
        /// A stable code. Its word is what programs compare.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $name,)*
        }

        impl Code {
            /// Every code, in the order of the documents.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The word.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            /// What became of a request that ended with this code.
            pub const fn status(self) -> Status {
                match self { $(Self::$name => Status::$status),* }
            }

            /// What the code means, in a few sentences.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning),* }
            }

            /// The usual next step.
            pub const fn hint(self) -> Option<&'static str> {
                match self { $(Self::$name => $hint),* }
            }

            /// The code with this word.
            ///
            /// ```
            /// use semaprax_protocol::Code;
            /// assert_eq!(Code::from_word("stale-base"), Some(Code::StaleBase));
            /// assert_eq!(Code::from_word("stale base"), None);
            /// ```
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$name),)* _ => None }
            }
        }
    };
}

codes! {
    StaleBase, "stale-base", Rejected,
    "ACTIVE is no longer the base of the submission. With `reject` any later publication has this effect; with `rebase` and `merge` only one that moved a path the submission touches or declared as read. Nothing was published; the diagnostic names ACTIVE and the paths that moved.",
    Some("read the named paths again and submit on the new base, or pass `--on-stale rebase` or `merge`");
    PreconditionFailed, "precondition-failed", Rejected,
    "An `expect` or a `reads` entry of the submission is not true of its base: the author worked from other content than the base has. Nothing was published.",
    Some("read the path again at the base and make the change anew");
    AlreadyExists, "already-exists", Rejected,
    "The target of a `move` is there already. Nothing is overwritten by force.",
    Some("delete the target in the same submission first, or choose another path");
    EditNotUnique, "edit-not-unique", Rejected,
    "The `old` text of an edit, or the old lines of a patch hunk, occur more than once, so the place is not known. The diagnostic gives the count and the line numbers.",
    Some("give more context around the text, so that it occurs once");
    EditNotFound, "edit-not-found", Rejected,
    "The `old` text of an edit, or the old lines of a patch hunk, do not occur in the file at the time they are applied. Nothing is ever placed by guessing.",
    Some("read the file again; the text must match byte for byte");
    MergeConflict, "merge-conflict", Rejected,
    "A file was changed on both sides in a way that cannot be put together without losing one of them: overlapping or adjacent lines, deleted against modified, moved against modified, two modes, or binary content. The diagnostic gives the digests of the three sides and the line ranges.",
    Some("read ACTIVE's content of the path, put both changes together, and submit on the new base");
    PathCollision, "path-collision", Rejected,
    "Two paths cannot exist together: a file where a directory is or the reverse, a path through a symlink, or (policy `portable`) two spellings that are equal after case folding.",
    Some("choose another path, or delete or move the one in the way in the same submission");
    GateFailed, "gate-failed", Rejected,
    "A gate ran on the sealed candidate and did not pass. Nothing was published.",
    Some("see the output of the gate, mend the candidate and submit again");
    GateTimeout, "gate-timeout", Rejected,
    "A gate did not finish within its time and was stopped together with all it had started.",
    Some("make the gate faster or raise its `timeout`");
    GateUntrusted, "gate-untrusted", Rejected,
    "The workspace declares gates that no person has trusted yet. They are code execution, so they do not run.",
    Some("look at the gate table and run `semaprax trust`");
    ApprovalRequired, "approval-required", Rejected,
    "The submission needs the approval of a person, and nobody may give it or the time for it ran out.",
    Some("ask someone who may approve it");
    QueueFull, "queue-full", Rejected,
    "As many submissions, or as many bytes, wait in this workspace as its limits allow. Nothing of this one was kept.",
    Some("submit again a little later");
    DeadlinePassed, "deadline-passed", Rejected,
    "The submission was not decided before its deadline and was taken out of the queue. Nothing was published.",
    Some("submit again, with a longer `--deadline` if the queue is long");
    AlreadyAWorkspace, "already-a-workspace", Rejected,
    "The directory is a workspace already, or lies inside the state directory of one.",
    Some("use it as it is (`semaprax status`)");
    WorkspaceLocked, "workspace-locked", Rejected,
    "Another daemon holds the workspace: one of another user, another runtime directory, or one that has just been asked to stop.",
    Some("unset SEMAPRAX_RUNTIME_DIR to reach the daemon named in `.semaprax-workspace/LOCK`, or stop that daemon");
    NotFound, "not-found", Failed,
    "The path, or the thing, does not exist. Inside a submission this is a rejection (exit code 1); of a read it is an error (exit code 2).",
    Some("`semaprax ls` lists the paths of a revision");
    Cancelled, "cancelled", Failed,
    "The submission was taken back before it was decided: by `cancel`, or because its client went away. Nothing was published.",
    None;
    InDoubt, "in-doubt", InDoubt,
    "ACTIVE was renamed, but the disk did not confirm that the rename is durable. The publication may or may not survive a power cut. The workspace is read-only until recovery has read ACTIVE again and made it durable.",
    Some("check the disk, then restart the daemon (`semaprax daemon stop`); repeating the same submission id tells what became of it");
    PathRefused, "path-refused", Failed,
    "The spelling of a path is not acceptable in this workspace: absolute, with `.` or `..` segments, control characters, `.git` or `.semaprax-workspace`, a name that the policy `portable` excludes, or a symlink target that is absolute or leaves the workspace.",
    Some("use a workspace-relative path; docs/invariants.md lists the name policies");
    InvalidSubmission, "invalid-submission", Failed,
    "The submission cannot be understood or contradicts itself: malformed JSON, an unknown field, a wrong type, content given twice or not at all, two changes that exclude each other, or an id that belongs to another submission.",
    Some("`semaprax schema submission` prints the form");
    LimitExceeded, "limit-exceeded", Failed,
    "Something is larger than the workspace's limits allow.",
    Some("`semaprax status --limits` shows the limits; they are set in config.toml");
    UnknownRevision, "unknown-revision", Failed,
    "No publication of this workspace has that revision or number.",
    Some("`semaprax log` lists the publications");
    AmbiguousRevision, "ambiguous-revision", Failed,
    "Several publications have revisions that start with these digits.",
    Some("give more digits, or `@N`");
    ContentCollected, "content-collected", Failed,
    "The record of the publication is kept, but its content was collected under the retention rules.",
    Some("see `retention` in docs/cli.md; `semaprax pin` keeps the content of a revision");
    NotAWorkspace, "not-a-workspace", Failed,
    "Neither the directory nor any of its parents holds a `.semaprax-workspace/store.db`.",
    Some("run `semaprax init`, or name the workspace with `-C DIR`");
    WorkspaceDamaged, "workspace-damaged", Failed,
    "The state of the workspace contradicts itself: ACTIVE is missing or names an unknown record, a record or a node does not match its digest, or the database cannot be read. Nothing is guessed.",
    Some("run `semaprax verify --deep`, then `semaprax verify --deep --repair`");
    UntidyState, "untidy-state", Failed,
    "The state directory is not as it was made: a name that does not belong there, one that is missing or is something else than it was, permissions that let others write, or a LOCK that names a daemon which is gone. No content is affected. `doctor` reports it; no other command is refused with it.",
    Some("run `semaprax doctor --repair`; what does not belong there is moved to `.semaprax-workspace/set-aside`");
    RecoveryNeeded, "recovery-needed", Failed,
    "An earlier operation ended in doubt or with a disk error, so the workspace takes no publication until it has been recovered.",
    Some("check the disk, then `semaprax daemon stop`; the next command recovers the workspace");
    UnsupportedFilesystem, "unsupported-filesystem", Failed,
    "The file system cannot keep what Semaprax promises (locks, atomic renames, durable directories), or is of a kind known not to.",
    Some("use a local file system, or `--force` where you know better");
    StoreVersion, "store-version", Failed,
    "The store was written by a newer version and this one does not understand it. Nothing was changed.",
    Some("use a semaprax at least as new as the one that wrote it");
    LeaseUnknown, "lease-unknown", Failed,
    "No lease has that id: it expired, was released, or never was.",
    Some("`semaprax lease list` shows the leases");
    DaemonUnreachable, "daemon-unreachable", Failed,
    "No daemon answers, and none may be started or the start failed.",
    Some("drop `--no-autostart`, or look into the daemon's log (`semaprax daemon status`)");
    ProtocolVersion, "protocol-version", Failed,
    "Client and daemon have no version of the protocol in common.",
    Some("stop the older daemon with `semaprax daemon stop`");
    ChangedDuringImport, "changed-during-import", Failed,
    "A file kept changing while it was read, so no whole content of it could be taken.",
    Some("stop whatever writes to it and try again");
    InvalidRequest, "invalid-request", Failed,
    "A request of the wire protocol is malformed, unknown, or not possible in the state of the connection.",
    Some("docs/protocol.md describes the protocol");
    InvalidSettings, "invalid-settings", Failed,
    "A `config.toml` cannot be read: it is no TOML, names a setting that there is not, or gives one a value that it cannot have. What would use it is not started or opened.",
    Some("docs/cli.md lists the settings; correct the file or remove it");
    ReadOnly, "read-only", Failed,
    "The workspace or the file system under it cannot be written to.",
    Some("mount it writable, or work on an `export`");
    PermissionDenied, "permission-denied", Failed,
    "The system does not allow this user to do it, or the peer is another user.",
    None;
    NoSpace, "no-space", Failed,
    "The disk has no room, or no inodes, for what had to be written. Nothing was published.",
    Some("make room, for example with `semaprax gc`, and try again");
    Io, "io", Failed,
    "The system reported an error on a file. The message names the path and the reason.",
    None;
    ShuttingDown, "shutting-down", Failed,
    "The daemon is stopping and takes no new work.",
    Some("try again: the next command starts a new daemon");
    Internal, "internal", Failed,
    "A defect in Semaprax: the request failed, nothing else was touched.",
    Some("please report it with the daemon's log");
    Usage, "usage", Rejected,
    "The command line cannot be understood: an unknown command or flag, a missing or malformed value. Nothing was done.",
    Some("`semaprax help` lists the commands");
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        // A word of a newer daemon is still an error of its own kind for an older client.
        Ok(Self::from_word(&word).unwrap_or(Self::Internal))
    }
}

impl JsonSchema for Code {
    fn schema_name() -> Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = Self::ALL.iter().map(|code| code.word()).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kebab_case_and_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.word()), "{} twice", code.word());
            assert!(
                code.word()
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c == '-')
            );
            assert!(code.meaning().len() > 40, "{code} explains nothing");
            assert_eq!(Code::from_word(code.word()), Some(*code));
        }
    }
}
