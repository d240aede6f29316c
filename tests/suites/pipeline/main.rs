//! From a submission to a publication and back to a reader, in this process, on a real disk.

mod bounds;
mod changes;
mod directory;
mod holding;
mod ids;
mod journal;
mod large;
mod outside;
mod reading;
mod recovery;
mod retention;
mod spares;
mod stale;
mod together;
mod trees;
mod verifying;
