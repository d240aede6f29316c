//! Stage 2: the candidate, in full.
//!
//! Owns: `Candidate`: the whole tree of content on top of the tip, its blobs ready for the store (large
//! ones written and synced); and `Staged`, a directory in `staging/` that is made of a tree. Nothing of it
//! is visible to anyone.

use std::collections::BTreeSet;

use semaprax_protocol::{LogicalPath, RecordDigest, Refusal, Revision};

use super::admit::{Content, Head, Proposal};
use super::evaluate::{Evaluated, evaluate};
use super::integrate::{Integrated, Sides, integrate, merge_trees};
use super::ledger::Ledger;
use crate::store::checkout::{LinkSource, Made, Modes, materialize, new_staging};
use crate::store::history::NamedMove;
use crate::store::layout::GenerationLayout;
use crate::store::objects::{FreshBlobs, PreparedBlob, prepare};
use crate::store::spares::{Current, Seen, Spare, patch};
use crate::store::tree::{Difference, Tree, UNSTAMPED, differences, stamped};
use crate::store::{StoreError, StoreResult, trash};

/// What is to be published, whole and private.
#[derive(Debug)]
#[must_use]
pub struct Candidate {
    pub(super) head: Head,
    pub(super) base: Revision,
    /// The record of the tip it was built on.
    pub(super) tip: RecordDigest,
    pub(super) tree: Tree,
    pub(super) fresh: FreshBlobs,
    pub(super) prepared: Vec<PreparedBlob>,
    pub(super) moves: Vec<NamedMove>,
    pub(super) merged: Vec<LogicalPath>,
    pub(super) rebased: bool,
    /// What differs from the tip.
    pub(super) differences: Vec<Difference>,
    /// The directory, of a candidate that is only judged: of those that are published the last one of a
    /// turn gets one.
    pub(super) staged: Option<Staged>,
}

/// The directory of a candidate.
#[derive(Debug)]
pub struct Staged {
    pub(super) place: GenerationLayout,
    pub(super) made: Made,
    /// What is known of its directories.
    pub(super) seen: Seen,
    /// Whether it was a spare.
    is_patched: bool,
}

impl Candidate {
    /// Whether its content is that of the tip.
    pub fn is_unchanged(&self, ledger: &Ledger) -> bool {
        self.tree.content() == ledger.tip.tree.content()
    }

    /// The tree as it lies in a directory that is made of it before it is published: what differs from
    /// the tip has no stamp and no time.
    fn untimed(&self, ledger: &Ledger) -> StoreResult<Tree> {
        let database = &ledger.store.database;
        stamped(&ledger.tip.tree, &self.tree, UNSTAMPED, database)
    }

    /// Makes the directory of a candidate that is judged and not published.
    pub(super) fn make_directory(&mut self, ledger: &Ledger) -> StoreResult<&Staged> {
        let (tree, active) = (self.untimed(ledger)?, ledger.current());
        let staged = make_directory(ledger, &active, &tree, &self.fresh)?;
        Ok(self.staged.insert(staged))
    }

    /// Takes its directory away.
    pub(super) fn discard(self, ledger: &Ledger) {
        if let Some(staged) = self.staged {
            discard_staging(ledger, &staged.place);
        }
    }

    /// Gives its directory, which is what it should be, back to the spares if it was one.
    pub(super) fn give_back(mut self, ledger: &Ledger) {
        match (self.untimed(ledger), self.staged.take()) {
            (Ok(tree), Some(staged)) if staged.is_patched && ledger.spares.wants() => {
                let Staged { place, seen, .. } = staged;
                ledger.spares.put(Spare::new(place, tree, seen));
            }
            (_, staged) => {
                self.staged = staged;
                self.discard(ledger);
            }
        }
    }
}

pub(super) fn discard_staging(ledger: &Ledger, staging: &GenerationLayout) {
    let store = &ledger.store;
    if let Err(error) = trash::discard(&store.world, &store.layout, staging.directory()) {
        // Recovery clears what stays behind.
        tracing::warn!(%error, "a candidate could not be taken away");
    }
}

struct Drafted {
    base: Revision,
    integrated: Integrated,
    fresh: FreshBlobs,
    moves: Vec<NamedMove>,
}

/// Builds the candidate on the tip. When a large blob could not be synced, the disk is not trusted any
/// more.
pub fn build(ledger: &mut Ledger, proposal: Proposal) -> Result<Candidate, Refusal> {
    assemble(ledger, proposal).map_err(|error| {
        ledger.distrust(&error);
        error.into()
    })
}

fn assemble(ledger: &Ledger, proposal: Proposal) -> StoreResult<Candidate> {
    let (head, content) = proposal.into_parts();
    let Drafted {
        base,
        integrated,
        mut fresh,
        moves,
    } = draft(ledger, &head, content)?;
    let store = &ledger.store;
    let tree = integrated.tree;
    let differences = differences(&ledger.tip.tree, &tree, &store.database)?;
    let needed: BTreeSet<_> = differences
        .iter()
        .filter_map(|difference| Some(difference.after?.blob))
        .collect();
    fresh.retain(&needed);
    let mut prepared = Vec::new();
    for blob in fresh.iter() {
        // A damaged row is as good as none: it is written anew.
        let is_known = match store.database.blob_info(&blob.info().digest) {
            Ok(known) => known.is_some(),
            Err(StoreError::Damaged { .. }) => false,
            Err(error) => return Err(error),
        };
        prepared.push(prepare(&store.world, &store.layout, blob, is_known)?);
    }
    Ok(Candidate {
        head,
        base,
        tip: ledger.tip.stored.digest,
        tree,
        fresh,
        prepared,
        moves,
        merged: integrated.merged,
        rebased: integrated.rebased,
        differences,
        staged: None,
    })
}

fn draft(ledger: &Ledger, head: &Head, content: Content) -> Result<Drafted, Refusal> {
    let store = &ledger.store;
    let (base, base_tree) = match &head.base {
        Some(base) => (base.record.revision, base.tree()?),
        None => (ledger.tip.stored.record.revision, ledger.tip.tree.clone()),
    };
    let integrate_onto_tip = |mut evaluated: Evaluated| -> Result<Drafted, Refusal> {
        let integrated = integrate(
            store,
            &base_tree,
            &mut evaluated,
            &ledger.tip,
            head.on_stale,
        )?;
        Ok(Drafted {
            base,
            integrated,
            fresh: evaluated.fresh,
            moves: evaluated.moves,
        })
    };
    let on_tip = |tree: Tree, merged: Vec<LogicalPath>, fresh: FreshBlobs| {
        let integrated = Integrated {
            tree,
            merged,
            rebased: false,
        };
        Drafted {
            base,
            integrated,
            fresh,
            moves: Vec::new(),
        }
    };
    match content {
        Content::Changes { changes, reads } => {
            integrate_onto_tip(evaluate(store, &base_tree, changes, &reads)?)
        }
        Content::Directory(tree, blobs) => {
            let touched = differences(&base_tree, &tree, &store.database)?;
            let touched = touched
                .into_iter()
                .map(|difference| difference.path)
                .collect();
            let mut fresh = FreshBlobs::default();
            for blob in blobs {
                fresh.add(blob);
            }
            let (moves, read) = (Vec::new(), BTreeSet::new());
            integrate_onto_tip(Evaluated {
                tree,
                fresh,
                moves,
                touched,
                read,
            })
        }
        Content::Whole(tree) => Ok(on_tip(tree, Vec::new(), FreshBlobs::default())),
        Content::Difference { from, to } => {
            let mut fresh = FreshBlobs::default();
            let sides = Sides {
                base: &from,
                ours: &ledger.tip.tree,
                theirs: &to,
            };
            let (tree, merged) = merge_trees(store, sides, &mut fresh)?;
            Ok(on_tip(tree, merged, fresh))
        }
    }
}

/// Makes the directory of `tree`: patches a spare, or links from the tree of `active` and writes what
/// differs; seals.
pub(super) fn make_directory(
    ledger: &Ledger,
    active: &Current,
    tree: &Tree,
    fresh: &FreshBlobs,
) -> StoreResult<Staged> {
    if let Some(staged) = patch_spare(ledger, active, tree, fresh) {
        return Ok(staged);
    }
    let store = &ledger.store;
    let place = GenerationLayout::at(new_staging(store)?);
    let source = Some(LinkSource {
        tree: &active.tree,
        files: &active.files,
    });
    let files = place.files();
    match materialize(store, tree, fresh, source, &files, Modes::SEALED) {
        Ok(made) => Ok(Staged {
            place,
            made,
            seen: Seen::default(),
            is_patched: false,
        }),
        Err(error) => {
            discard_staging(ledger, &place);
            Err(error)
        }
    }
}

/// A spare turned into the tree; `None` when there is none that can be.
fn patch_spare(
    ledger: &Ledger,
    active: &Current,
    tree: &Tree,
    fresh: &FreshBlobs,
) -> Option<Staged> {
    let mut spare = ledger.spares.take()?;
    let store = &ledger.store;
    match patch(store, &mut spare, active, tree, fresh) {
        Ok(made) => {
            let (place, seen) = spare.into_parts();
            Some(Staged {
                place,
                made,
                seen,
                is_patched: true,
            })
        }
        Err(error) => {
            tracing::warn!(%error, "a spare tree could not be made the candidate; it is made anew");
            spare.discard(store);
            None
        }
    }
}
