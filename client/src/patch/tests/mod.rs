//! Tests of patches: case by case, for every input, and against the real git.

mod apply;
mod format;
mod git;
mod git_render;
mod parse;
mod stat;
