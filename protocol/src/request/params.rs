//! The parameters of every method, and the answers that are no documents of their own.
//!
//! Owns: their fields. A request refuses what it does not know; an answer may gain fields.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::documents::JournalEntry;
use crate::submission::{EntryKind, OnStale, Submission};
use crate::version::ProtocolRange;
use crate::{LeaseId, LogicalPath, NamePolicy, Revision, Seq, Sha256, SubmissionId, WorkspaceId};

macro_rules! fields {
    ($attribute:meta; $($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[$attribute]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* })*
    };
}

macro_rules! params {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        fields! {
            serde(rename_all = "camelCase", deny_unknown_fields, remote = "Self");
            $($(#[$doc])* $name { $($(#[$field_doc])* $field: $type,)* })*
        }
        crate::object::object_form!($($name),*);
    };
}

params! {

    /// Parameters of `hello`.
    Hello {
        /// The versions the client speaks.
        protocol: ProtocolRange,
        /// The client's name and build version, for the log.
        client: String,
        /// The directory of the workspace the connection is about: it holds `.semaprax-workspace`.
        /// Without it only `daemon.*` and `init` are possible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<Utf8PathBuf>,
    }

    /// Parameters of `daemon.status`.
    DaemonStatusParams {}

    /// Parameters of `daemon.stop`.
    DaemonStop {
        /// Only when no other client is connected and nothing runs; otherwise `workspace-locked`.
        #[serde(default)]
        if_idle: bool,
    }

    /// Parameters of `init`.
    Init {
        /// The directory, absolute.
        directory: Utf8PathBuf,
        /// The name policy; without it the strictest that no imported name offends.
        #[serde(default)]
        names: Option<NamePolicy>,
        /// Whether a file system that is known to break promises is accepted.
        #[serde(default)]
        force: bool,
        /// Whether other users may read the state directory.
        #[serde(default)]
        shared: bool,
        /// The author of publication 1.
        #[serde(default)]
        author: String,
        /// The message of publication 1; a default when empty.
        #[serde(default)]
        message: String,
    }

    /// Parameters of `status`.
    StatusParams {
        /// Whether to compare the directory with ACTIVE.
        #[serde(default)]
        drift: bool,
        /// Whether to tell the limits.
        #[serde(default)]
        limits: bool,
    }

    /// Parameters of `resolve`.
    Resolve {
        /// A revision argument: hex, `@`, `@N`, `@-N`.
        revision: String,
    }

    /// Parameters of `log`.
    Log {
        /// At most this many entries.
        #[serde(default)]
        limit: Option<u64>,
        /// Only publications before this number.
        #[serde(default)]
        before: Option<Seq>,
        /// Only publications that changed this path, or a path below it.
        #[serde(default)]
        path: Option<String>,
        /// Only publications by this author.
        #[serde(default)]
        author: Option<String>,
    }

    /// Parameters of `show`.
    Show {
        /// A revision argument.
        revision: String,
    }

    /// Parameters of `diff`.
    Diff {
        /// The old side, a revision argument.
        from: String,
        /// The new side; `@` without it.
        #[serde(default)]
        to: Option<String>,
    }

    /// Parameters of `ls`.
    List {
        /// A revision argument; `@` without it.
        #[serde(default)]
        revision: Option<String>,
        /// Only this path, or what lies below it.
        #[serde(default)]
        prefix: Option<String>,
        /// Only paths after this one.
        #[serde(default)]
        after: Option<LogicalPath>,
        /// At most this many.
        #[serde(default)]
        limit: Option<u64>,
    }

    /// Parameters of `content`.
    Content {
        /// A revision argument; `@` without it.
        #[serde(default)]
        revision: Option<String>,
        /// The path.
        path: String,
        /// Where to start, in bytes.
        #[serde(default)]
        offset: u64,
        /// At most this many bytes; a chunk without it.
        #[serde(default)]
        length: Option<u64>,
    }

    /// Parameters of `blame`.
    BlameParams {
        /// The path.
        path: String,
        /// A revision argument; `@` without it.
        #[serde(default)]
        revision: Option<String>,
    }

    /// Parameters of `blob.put`.
    BlobPut {
        /// SHA-256 of the whole content: its name.
        sha256: Sha256,
        /// Bytes of the whole content.
        bytes: u64,
        /// Where this piece starts: pieces come in order.
        offset: u64,
        /// The piece, in standard base64, at most 1 MiB before it.
        data: String,
    }

    /// How a publishing request is to be carried out.
    #[derive(Default)]
    PublishOptions {
        /// Everything but the publication.
        #[serde(default)]
        dry_run: bool,
        /// Whether the submission stays when its client goes away.
        #[serde(default)]
        detach: bool,
        /// How long it may wait for its decision, in milliseconds.
        #[serde(default)]
        deadline_ms: Option<u64>,
    }

    /// Parameters of `publish`.
    Publish {
        /// The submission.
        submission: Submission,
        /// How to carry it out.
        #[serde(default)]
        options: PublishOptions,
    }

    /// What the publishing requests without changes of their own say about themselves.
    #[derive(Default)]
    Attribution {
        /// The name of this submission.
        #[serde(default)]
        id: Option<SubmissionId>,
        /// Who.
        #[serde(default)]
        author: String,
        /// What and why; a default when empty.
        #[serde(default)]
        message: String,
    }

    /// Parameters of `publish.directory`.
    PublishDirectory {
        /// The directory, absolute.
        directory: Utf8PathBuf,
        /// The base; without it the one that `export` marked the directory with.
        #[serde(default)]
        base: Option<String>,
        /// What to do when ACTIVE is no longer the base.
        #[serde(default)]
        on_stale: OnStale,
        /// Who and why.
        #[serde(default)]
        attribution: Attribution,
        /// How to carry it out.
        #[serde(default)]
        options: PublishOptions,
    }

    /// Parameters of `rollback`.
    Rollback {
        /// The revision whose content is published again.
        revision: String,
        /// Who and why.
        #[serde(default)]
        attribution: Attribution,
        /// How to carry it out.
        #[serde(default)]
        options: PublishOptions,
    }

    /// Parameters of `revert`.
    Revert {
        /// The publication to take out.
        seq: Seq,
        /// Who and why.
        #[serde(default)]
        attribution: Attribution,
        /// How to carry it out.
        #[serde(default)]
        options: PublishOptions,
    }

    /// Parameters of `undo`.
    Undo {
        /// Who and why.
        #[serde(default)]
        attribution: Attribution,
        /// How to carry it out.
        #[serde(default)]
        options: PublishOptions,
    }

    /// Parameters of `queue`.
    QueueParams {}

    /// Parameters of `cancel`.
    Cancel {
        /// The submission.
        submission: SubmissionId,
    }

    /// Parameters of `lease.acquire`.
    LeaseAcquire {
        /// A revision argument; `@` without it.
        #[serde(default)]
        revision: Option<String>,
        /// How long it lasts, in milliseconds: a detached lease. Without it the lease ends with
        /// the connection.
        #[serde(default)]
        ttl_ms: Option<u64>,
        /// Who, for people.
        #[serde(default)]
        owner: String,
    }

    /// Parameters of `lease.renew`.
    LeaseRenew {
        /// The lease.
        lease: LeaseId,
        /// How long it lasts from now, in milliseconds; as long as first asked for without it.
        #[serde(default)]
        ttl_ms: Option<u64>,
    }

    /// Parameters of `lease.release`.
    LeaseRelease {
        /// The lease.
        lease: LeaseId,
    }

    /// Parameters of `lease.list`.
    LeaseListParams {}

    /// Parameters of `watch`.
    Watch {
        /// Where to go on from: `SEQ` or `SEQ:RECORD`; from ACTIVE without it.
        #[serde(default)]
        since: Option<String>,
    }

    /// Parameters of `pin`.
    Pin {
        /// A revision argument.
        revision: String,
        /// Why, for people.
        #[serde(default)]
        reason: String,
    }

    /// Parameters of `unpin`.
    Unpin {
        /// A revision argument.
        revision: String,
    }

    /// Parameters of `gc`.
    Collect {
        /// Only tell what would be removed.
        #[serde(default)]
        dry_run: bool,
        /// Trees younger than this are kept, in milliseconds; the configured age without it.
        #[serde(default)]
        min_age_ms: Option<u64>,
        /// How many of the newest trees are kept; the configured number without it.
        #[serde(default)]
        keep: Option<u64>,
    }

    /// Parameters of `why`.
    WhyParams {
        /// A revision argument.
        revision: String,
    }

    /// Parameters of `verify`.
    Verify {
        /// Whether to read and digest every blob and every file, not only records and names.
        #[serde(default)]
        deep: bool,
        /// Whether to put right what can be.
        #[serde(default)]
        repair: bool,
        /// The directory of the workspace, for one that is too damaged to be opened: sent on a
        /// connection that names none.
        #[serde(default)]
        directory: Option<Utf8PathBuf>,
    }

    /// Parameters of `doctor`.
    Doctor {
        /// A directory to look at; for a directory that is no workspace (yet), or one that cannot be
        /// opened.
        #[serde(default)]
        directory: Option<Utf8PathBuf>,
        /// Whether to put right what can be.
        #[serde(default)]
        repair: bool,
    }

    /// Parameters of `journal`.
    Journal {
        /// Only entries after this number.
        #[serde(default)]
        since: u64,
        /// At most this many.
        #[serde(default)]
        limit: Option<u64>,
        /// Wait until there is an entry, at most this long, in milliseconds.
        #[serde(default)]
        wait_ms: Option<u64>,
    }

    /// Parameters of `journal.head`.
    JournalHead {}

    /// Parameters of `export`.
    Export {
        /// A revision argument; `@` without it.
        #[serde(default)]
        revision: Option<String>,
        /// The directory to make, absolute; it must not exist or be empty.
        directory: Utf8PathBuf,
    }
}

// An answer may gain fields: an older client passes over what it does not know.
fields! {
    serde(rename_all = "camelCase");

    /// Answer of `resolve`.
    Resolved {
        /// The publication number.
        seq: Seq,
        /// The whole revision.
        revision: Revision,
    }

    /// Answer of `content`.
    ContentChunk {
        /// The generation.
        revision: Revision,
        /// What the path is.
        kind: EntryKind,
        /// Bytes of the whole content.
        bytes: u64,
        /// SHA-256 of the whole content.
        sha256: Sha256,
        /// Where this piece starts.
        offset: u64,
        /// The piece, in standard base64.
        data: String,
    }

    /// Answer of `blob.put`.
    BlobReceived {
        /// The name.
        sha256: Sha256,
        /// Bytes received so far.
        received: u64,
        /// Whether the content is whole and its digest right.
        complete: bool,
    }

    /// Answer of `journal`.
    JournalPage {
        /// The entries, oldest first.
        entries: Vec<JournalEntry>,
        /// Whether there are more after the last one.
        more: bool,
    }

    /// Answer of `hello`.
    Welcome {
        /// The version both sides speak from here on.
        protocol: u32,
        /// The daemon's process.
        pid: u32,
        /// The daemon's build version.
        version: String,
        /// The identity of the workspace, where one was named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<WorkspaceId>,
        /// The longest line, in bytes.
        line_bytes: u64,
    }
}
