//! The bytes of the wire: golden lines of every request, answer, notice, error and document, and what
//! the decoders make of anything else.
//!
//! The lines lie in `tests/corpus/wire/`. `UPDATE_CORPUS=1` writes the ones that are new; a line whose
//! form has changed gets a new file beside the old one, which must be readable for ever.

mod answers;
mod corpus;
mod decoding;
mod documents;
mod requests;
mod schemas;
mod values;
