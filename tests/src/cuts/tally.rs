//! The figures of a run of cuts.

use std::collections::BTreeMap;
use std::fmt;

use crate::images::Kind;

/// The figures of one kind of file system.
#[derive(Debug, Default, Clone, Copy)]
pub struct Figures {
    /// Cuts judged.
    pub cuts: u64,
    /// Those made while a daemon recovered from another one.
    pub in_recovery: u64,
    /// Those that left no workspace, while one was being made.
    pub unmade: u64,
    /// Those after which the tree of ACTIVE was torn, and mended before anyone had it.
    pub torn: u64,
    /// Those after which the check of the file system had cleared synced bytes, and the workspace was refused.
    pub taken: u64,
    /// Publications acknowledged before a cut, all found again.
    pub acknowledged: u64,
    /// Submissions under way at a cut that turned out published.
    pub found_published: u64,
    /// Submissions under way at a cut that turned out not published.
    pub found_unpublished: u64,
}

/// The figures of all.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    /// By kind.
    pub kinds: BTreeMap<Kind, Figures>,
    /// Cuts by where they were made.
    pub moments: BTreeMap<String, u64>,
    /// Workspaces used.
    pub workspaces: u64,
}

impl Tally {
    /// All cuts judged.
    pub fn cuts(&self) -> u64 {
        self.kinds.values().map(|figures| figures.cuts).sum()
    }

    /// Takes the figures of a part over.
    pub fn add(&mut self, part: &Self) {
        for (&kind, figures) in &part.kinds {
            let own = self.of(kind);
            own.cuts += figures.cuts;
            own.in_recovery += figures.in_recovery;
            own.unmade += figures.unmade;
            own.torn += figures.torn;
            own.taken += figures.taken;
            own.acknowledged += figures.acknowledged;
            own.found_published += figures.found_published;
            own.found_unpublished += figures.found_unpublished;
        }
        for (moment, times) in &part.moments {
            *self.moments.entry(moment.clone()).or_default() += times;
        }
        self.workspaces += part.workspaces;
    }

    /// The figures of a kind, to be added to.
    pub fn of(&mut self, kind: Kind) -> &mut Figures {
        self.kinds.entry(kind).or_default()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            moments,
            workspaces,
            ..
        } = self;
        writeln!(
            out,
            "{} cuts {moments:?}, {workspaces} workspaces",
            self.cuts()
        )?;
        for (kind, figures) in &self.kinds {
            let Figures {
                cuts,
                in_recovery,
                unmade,
                torn,
                taken,
                acknowledged,
                found_published,
                found_unpublished,
            } = figures;
            writeln!(
                out,
                "  {}: {cuts} cuts ({in_recovery} in recovery, {unmade} before there was a workspace), {torn} torn trees mended, {taken} with synced bytes cleared by the check, {acknowledged} acknowledged publications found, {found_published} and {found_unpublished} of the unknown published and not",
                kind.name()
            )?;
        }
        Ok(())
    }
}
