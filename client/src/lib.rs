//! Placeholder.
pub mod patch;
