//! What the compiler does not check: who imports whom, the length of files, and that documents and
//! suites name each other rightly.

mod documents;
mod files;
mod imports;
mod manifests;
mod source;
