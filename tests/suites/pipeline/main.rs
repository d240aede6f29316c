//! From a submission to a publication and back to a reader, in this process, on a real disk.

mod changes;
mod holding;
mod ids;
mod reading;
mod stale;
mod trees;
