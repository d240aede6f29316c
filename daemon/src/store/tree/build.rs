//! Making directories, and changing some names of one: pages in which nothing changes are taken over.
//!
//! Owns: `directory`, `changed`. The result is the same node by node as if the directory had been made
//! of its names anew.

use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

use super::page::{Node, Page, UNDIVIDED, level};
use super::{Branch, Entry, Named, NodeSource};
use crate::store::StoreResult;

/// What becomes of a name; `None` takes it away.
pub(super) type Edit = (Box<str>, Option<Entry>);

/// The directory `base` after `edits`, which are sorted by name, each name once. `None` when no name is left.
pub(super) fn changed(
    base: Option<&Arc<Branch>>,
    edits: Vec<Edit>,
    source: &dyn NodeSource,
) -> StoreResult<Option<Arc<Branch>>> {
    if edits.is_empty() {
        return Ok(base.map(Arc::clone));
    }
    let mut edits = edits.into_iter().peekable();
    let mut builder = Builder {
        source,
        names: Vec::new(),
        pages: Vec::new(),
    };
    if let Some(base) = base {
        builder.feed(base, None, &mut edits)?;
    }
    for (name, entry) in edits {
        if let Some(entry) = entry {
            builder.push((name, entry));
        }
    }
    builder.finish()
}

/// Names and pages on their way into pages.
struct Builder<'source> {
    source: &'source dyn NodeSource,
    /// Names of the page of height 0 that is being filled.
    names: Vec<Named>,
    /// At `h`, the pages of height `h` of the page above that is being filled.
    pages: Vec<Vec<Page>>,
}

impl Builder<'_> {
    /// Everything of `branch` after those edits whose names are at most `bound`.
    fn feed(
        &mut self,
        branch: &Branch,
        bound: Option<&str>,
        edits: &mut Peekable<IntoIter<Edit>>,
    ) -> StoreResult<()> {
        let is_within = |edit: &Edit| bound.is_none_or(|bound| *edit.0 <= *bound);
        match branch.open(self.source)?.as_ref() {
            Node::Names(names) => {
                for (name, entry) in names {
                    while let Some((new, entry)) = edits.next_if(|edit| edit.0 < *name) {
                        self.edit(new, entry);
                    }
                    match edits.next_if(|edit| edit.0 == *name) {
                        Some((name, entry)) => self.edit(name, entry),
                        None => self.push((name.clone(), entry.clone())),
                    }
                }
                while let Some((name, entry)) = edits.next_if(is_within) {
                    self.edit(name, entry);
                }
            }
            Node::Pages(pages) => {
                let count = pages.len();
                for (place, page) in pages.iter().enumerate() {
                    let bound = if place + 1 == count {
                        bound
                    } else {
                        Some(page.last())
                    };
                    let is_touched = edits
                        .peek()
                        .is_some_and(|edit| bound.is_none_or(|bound| *edit.0 <= *bound));
                    if !is_touched && self.takes(page) {
                        self.push_page(page.clone());
                    } else {
                        self.feed(page.branch(), bound, edits)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn edit(&mut self, name: Box<str>, entry: Option<Entry>) {
        if let Some(entry) = entry {
            self.push((name, entry));
        }
    }

    fn push(&mut self, named: Named) {
        let ends = level(&named.0) > 0;
        self.names.push(named);
        if ends {
            self.close_names();
        }
    }

    fn close_names(&mut self) {
        if let Some(page) = Page::of(Node::Names(std::mem::take(&mut self.names))) {
            self.push_page(page);
        }
    }

    /// Whether `page` can be taken as it is: it begins where a page begins and ends where one ends.
    fn takes(&self, page: &Page) -> bool {
        let below = self.pages.iter().take(usize::from(page.height()));
        self.names.is_empty() && below.into_iter().all(Vec::is_empty) && page.is_closed()
    }

    fn push_page(&mut self, page: Page) {
        let height = page.height();
        let ends = level(page.last()) > height + 1;
        self.waiting(height).push(page);
        if ends {
            self.close_pages(height);
        }
    }

    fn close_pages(&mut self, height: u8) {
        if let Some(page) = Page::of(Node::Pages(std::mem::take(self.waiting(height)))) {
            self.push_page(page);
        }
    }

    fn waiting(&mut self, height: u8) -> &mut Vec<Page> {
        let height = usize::from(height);
        if self.pages.len() <= height {
            self.pages.resize_with(height + 1, Vec::new);
        }
        // In bounds by the line above.
        #[expect(clippy::indexing_slicing, reason = "made long enough just before")]
        &mut self.pages[height]
    }

    fn finish(mut self) -> StoreResult<Option<Arc<Branch>>> {
        let pages = self.pages.iter().flatten().map(Page::names);
        let count = self.names.len() as u64 + pages.sum::<u64>();
        if count == 0 {
            return Ok(None);
        }
        if count <= UNDIVIDED {
            return self.undivided().map(Some);
        }
        self.close_names();
        let mut height = 0;
        let mut root = loop {
            let is_top = self
                .pages
                .iter()
                .skip(usize::from(height) + 1)
                .all(Vec::is_empty);
            match self.waiting(height).as_slice() {
                [only] if is_top => break Arc::clone(only.branch()),
                _ => self.close_pages(height),
            }
            height += 1;
        };
        // A page that only holds one page says nothing: without this the height would follow from
        // the last name, not from the number of names.
        loop {
            let below = match root.open(self.source)?.as_ref() {
                Node::Pages(pages) => match pages.as_slice() {
                    [only] => Arc::clone(only.branch()),
                    _ => break,
                },
                Node::Names(_) => break,
            };
            root = below;
        }
        Ok(Some(root))
    }

    /// The few names there are, in one node: those of the highest pages come first.
    fn undivided(self) -> StoreResult<Arc<Branch>> {
        let mut names: Vec<Named> = Vec::new();
        for page in self.pages.iter().rev().flatten() {
            let found = page.branch().entries(self.source)?;
            names.extend(found.into_iter().cloned());
        }
        names.extend(self.names);
        Ok(Arc::new(Branch::of(Node::Names(names))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use semaprax_protocol::submission::EntryKind;
    use semaprax_protocol::{BlobDigest, StampedDigest};

    use super::*;
    use crate::store::StoreError;
    use crate::store::tree::cursor::{Sameness, differing};
    use crate::store::tree::{Leaf, codec};

    /// Everything is in memory.
    struct Nowhere;

    impl NodeSource for Nowhere {
        fn node(&self, digest: &StampedDigest) -> StoreResult<Vec<u8>> {
            Err(StoreError::damaged(format!("node {digest} was asked for")))
        }
    }

    fn leaf(content: u8) -> Entry {
        let blob = BlobDigest::from_bytes([content; 32]);
        Entry::Leaf(Leaf {
            kind: EntryKind::File,
            blob,
            bytes: u64::from(content),
            stamp: 1,
        })
    }

    fn made_of(names: &BTreeMap<String, u8>) -> Option<Arc<Branch>> {
        let edits = names
            .iter()
            .map(|(name, content)| (name.as_str().into(), Some(leaf(*content))));
        changed(None, edits.collect(), &Nowhere).unwrap()
    }

    fn same_nodes(one: &Branch, other: &Branch) {
        assert_eq!(one.content(), other.content());
        assert_eq!(one.stamped(), other.stamped());
        match (
            one.open(&Nowhere).unwrap().as_ref(),
            other.open(&Nowhere).unwrap().as_ref(),
        ) {
            (Node::Names(one), Node::Names(other)) => assert_eq!(one.len(), other.len()),
            (Node::Pages(one), Node::Pages(other)) => {
                assert_eq!(one.len(), other.len());
                for (one, other) in one.iter().zip(other) {
                    same_nodes(one.branch(), other.branch());
                }
            }
            _ => panic!("divided and undivided"),
        }
    }

    fn names() -> impl Strategy<Value = BTreeMap<String, u8>> {
        let few = prop::collection::btree_map("[a-z]{1,3}", any::<u8>(), 0..80);
        let many = prop::collection::btree_map("[a-z]{1,4}", any::<u8>(), 0..3000);
        prop_oneof![few, many]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn changed_is_made_anew(before in names(), edits in prop::collection::btree_map("[a-z]{1,3}", any::<Option<u8>>(), 0..60), picked in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
            let mut edits = edits;
            if !before.is_empty() {
                let known: Vec<_> = before.keys().collect();
                for index in picked {
                    edits.insert((*index.get(&known)).clone(), None);
                }
            }
            let mut after = before.clone();
            for (name, content) in &edits {
                match content {
                    Some(content) => drop(after.insert(name.clone(), *content)),
                    None => drop(after.remove(name)),
                }
            }
            let base = made_of(&before);
            let list = edits.iter().map(|(name, content)| (name.as_str().into(), content.map(leaf)));
            let found = changed(base.as_ref(), list.collect(), &Nowhere).unwrap();
            match (&found, &made_of(&after)) {
                (None, None) => {}
                (Some(found), Some(expected)) => {
                    same_nodes(found, expected);
                    let listed: Vec<_> = found.entries(&Nowhere).unwrap().iter().map(|(name, _)| name.to_string()).collect();
                    prop_assert_eq!(listed, after.keys().cloned().collect::<Vec<_>>());
                    prop_assert_eq!(found.files(), after.len() as u64);
                    prop_assert_eq!(found.names(&Nowhere).unwrap(), after.len() as u64);
                    for name in before.keys().chain(after.keys()) {
                        prop_assert_eq!(found.get(name, &Nowhere).unwrap().is_some(), after.contains_key(name));
                    }
                }
                _ => prop_assert!(false, "one is nothing"),
            }
            let mut seen = BTreeMap::new();
            differing(base.as_ref(), found.as_ref(), Sameness::Content, &Nowhere, &mut |name, old, new| {
                let content = |entry: Option<&Entry>| entry.and_then(|entry| match entry {
                    Entry::Leaf(leaf) => Some(leaf.bytes),
                    Entry::Branch(_) => None,
                });
                if content(old) != content(new) {
                    seen.insert(name.to_owned(), (content(old), content(new)));
                }
                Ok(())
            }).unwrap();
            let mut expected = BTreeMap::new();
            for name in before.keys().chain(after.keys()) {
                let sides = (before.get(name).map(|&byte| u64::from(byte)), after.get(name).map(|&byte| u64::from(byte)));
                if sides.0 != sides.1 {
                    expected.insert(name.clone(), sides);
                }
            }
            prop_assert_eq!(seen, expected);
        }
    }

    fn nodes_below(branch: &Branch) -> usize {
        match branch.open(&Nowhere).unwrap().as_ref() {
            Node::Names(_) => 1,
            Node::Pages(pages) => {
                1 + pages
                    .iter()
                    .map(|page| nodes_below(page.branch()))
                    .sum::<usize>()
            }
        }
    }

    #[test]
    fn one_name_of_many_makes_few_new_nodes() {
        let before: BTreeMap<_, _> = (0..100_000)
            .map(|n| (format!("file-{n:06}.rs"), 1))
            .collect();
        let base = made_of(&before).unwrap();
        assert!(nodes_below(&base) > 2000);
        let edit = vec![("file-050000.rs".into(), Some(leaf(2)))];
        let after = changed(Some(&base), edit, &Nowhere).unwrap().unwrap();
        let mut known = std::collections::BTreeSet::new();
        let mut fresh = Vec::new();
        collect(&base, &mut |branch, _| {
            known.insert(branch.stamped());
        });
        collect(&after, &mut |branch, entries| {
            if !known.contains(&branch.stamped()) {
                fresh.push(entries);
            }
        });
        assert!(fresh.len() <= 6, "{fresh:?}");
        assert!(fresh.iter().sum::<usize>() < 1000, "{fresh:?}");
    }

    fn collect(branch: &Branch, visit: &mut dyn FnMut(&Branch, usize)) {
        let node = branch.open(&Nowhere).unwrap();
        let bytes = codec::encode(node);
        assert_eq!(codec::encode(&codec::decode(&bytes).unwrap()), bytes);
        visit(branch, node.len());
        if let Node::Pages(pages) = node.as_ref() {
            for page in pages {
                collect(page.branch(), visit);
            }
        }
    }
}
