//! Two directories side by side: pages that are equal are passed over whole.
//!
//! Owns: `differing`, and what makes two sides the same. Never: what a difference means.

use std::cmp::Ordering;
use std::sync::Arc;

use super::page::{Node, Page};
use super::{Branch, Entry, Leaf, Named, NodeSource};
use crate::store::StoreResult;

/// What makes two leaves, directories or pages the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sameness {
    /// Names, kinds and bytes.
    Content,
    /// The stamps too.
    Stamps,
}

impl Sameness {
    pub(super) fn of_branches(self, one: &Branch, other: &Branch) -> bool {
        match self {
            Self::Content => one.content() == other.content(),
            Self::Stamps => one.stamped() == other.stamped(),
        }
    }

    pub(super) fn of_leaves(self, one: &Leaf, other: &Leaf) -> bool {
        match self {
            Self::Content => one.same_content(other),
            Self::Stamps => one == other,
        }
    }
}

/// Told of a name: what it was, what it is.
pub(super) type Visit<'visit> =
    dyn FnMut(&str, Option<&Entry>, Option<&Entry>) -> StoreResult<()> + 'visit;

/// Calls `visit` for every name of either side, in order, but for those in pages that are the same.
/// So a name whose two sides are equal may be told too.
pub(super) fn differing(
    before: Option<&Arc<Branch>>,
    after: Option<&Arc<Branch>>,
    sameness: Sameness,
    source: &dyn NodeSource,
    visit: &mut Visit<'_>,
) -> StoreResult<()> {
    let (mut old, mut new) = (Cursor::at(before, source)?, Cursor::at(after, source)?);
    loop {
        let step = match (old.peek(), new.peek()) {
            (None, None) => return Ok(()),
            (Some(Item::Page(one)), Some(Item::Page(other))) => {
                Step::of_pages(one, other, sameness)
            }
            (Some(Item::Page(_)), _) => Step::Enter {
                old: true,
                new: false,
            },
            (_, Some(Item::Page(_))) => Step::Enter {
                old: false,
                new: true,
            },
            (Some(Item::Name((name, entry))), None) => {
                visit(name, Some(entry), None)?;
                Step::Pass {
                    old: true,
                    new: false,
                }
            }
            (None, Some(Item::Name((name, entry)))) => {
                visit(name, None, Some(entry))?;
                Step::Pass {
                    old: false,
                    new: true,
                }
            }
            (Some(Item::Name((one, was))), Some(Item::Name((other, is)))) => match one.cmp(other) {
                Ordering::Less => {
                    visit(one, Some(was), None)?;
                    Step::Pass {
                        old: true,
                        new: false,
                    }
                }
                Ordering::Greater => {
                    visit(other, None, Some(is))?;
                    Step::Pass {
                        old: false,
                        new: true,
                    }
                }
                Ordering::Equal => {
                    visit(one, Some(was), Some(is))?;
                    Step::Pass {
                        old: true,
                        new: true,
                    }
                }
            },
        };
        match step {
            Step::Pass {
                old: pass_old,
                new: pass_new,
            } => {
                old.pass(pass_old);
                new.pass(pass_new);
            }
            Step::Enter {
                old: enter_old,
                new: enter_new,
            } => {
                old.enter(enter_old, source)?;
                new.enter(enter_new, source)?;
            }
        }
    }
}

/// What the two sides do next.
enum Step {
    /// Go past what stands there.
    Pass { old: bool, new: bool },
    /// Go into the page that stands there.
    Enter { old: bool, new: bool },
}

impl Step {
    /// The higher one is entered first: its pages may be equal to the other.
    fn of_pages(old: &Page, new: &Page, sameness: Sameness) -> Self {
        if sameness.of_branches(old.branch(), new.branch()) {
            return Self::Pass {
                old: true,
                new: true,
            };
        }
        Self::Enter {
            old: old.height() >= new.height(),
            new: new.height() >= old.height(),
        }
    }
}

enum Item<'node> {
    Name(&'node Named),
    Page(&'node Page),
}

/// A place in a directory; nodes above it, with the place in each.
struct Cursor {
    path: Vec<(Arc<Node>, usize)>,
}

impl Cursor {
    fn at(branch: Option<&Arc<Branch>>, source: &dyn NodeSource) -> StoreResult<Self> {
        let root = branch.map(|branch| branch.open(source)).transpose()?;
        let mut cursor = Self {
            path: root.map(|root| (Arc::clone(root), 0)).into_iter().collect(),
        };
        cursor.leave();
        Ok(cursor)
    }

    fn peek(&self) -> Option<Item<'_>> {
        let (node, place) = self.path.last()?;
        match node.as_ref() {
            Node::Names(names) => names.get(*place).map(Item::Name),
            Node::Pages(pages) => pages.get(*place).map(Item::Page),
        }
    }

    fn pass(&mut self, really: bool) {
        if let Some((_, place)) = self.path.last_mut().filter(|_| really) {
            *place += 1;
            self.leave();
        }
    }

    fn enter(&mut self, really: bool, source: &dyn NodeSource) -> StoreResult<()> {
        let node = match self.peek().filter(|_| really) {
            Some(Item::Page(page)) => Arc::clone(page.branch().open(source)?),
            _ => return Ok(()),
        };
        // Past the page, so that leaving it goes on behind it.
        if let Some((_, place)) = self.path.last_mut() {
            *place += 1;
        }
        self.path.push((node, 0));
        self.leave();
        Ok(())
    }

    /// Out of every node that is at its end.
    fn leave(&mut self) {
        while self
            .path
            .last()
            .is_some_and(|(node, place)| *place >= node.len())
        {
            self.path.pop();
        }
    }
}
