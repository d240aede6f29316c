//! The machine this runs on: the only home of `std::fs` and of the clock.

/// The real disk, clock and entropy.
#[derive(Debug)]
pub struct RealWorld;
