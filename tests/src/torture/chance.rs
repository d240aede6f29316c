//! Chance with a seed.
//!
//! Owns: the one source of what is random in a run, so that a seed replays the same decisions. What
//! the system's scheduler adds cannot be replayed.

use semaprax_protocol::SubmissionId;

/// `SplitMix64`.
#[derive(Debug, Clone)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// The chance of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// An independent one, for `part` of what this one is for.
    #[must_use]
    pub fn part(&mut self, part: u64) -> Self {
        Self::new(self.number() ^ part.wrapping_mul(0xA076_1D64_78BD_642F))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, without, `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// One of them; `None` of none.
    pub fn pick<'list, T>(&mut self, list: &'list [T]) -> Option<&'list T> {
        let index = self.below(list.len() as u64);
        list.get(usize::try_from(index).unwrap_or(0))
    }

    /// True this many times in a hundred.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// A new name for a submission.
    pub fn submission(&mut self) -> SubmissionId {
        let (high, low) = (self.number(), self.number());
        let bits = (u128::from(high) << 64) | u128::from(low);
        SubmissionId::from_uuid(uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid())
    }
}
