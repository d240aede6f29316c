//! No room, or nothing that can be written to: real daemons on real file systems that are too small or turn
//! read-only, and damage under a daemon that serves other workspaces too.
//!
//! Images need root and loop devices; where they are missing a test says so, and on CI it fails.

mod full;
mod lab;
mod served;
