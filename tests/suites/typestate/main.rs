//! What must not compile: making a stage's value outside its module, leaving a stage out, doing one
//! twice, two turns of one writer at once. Each case has a twin that does the same in the allowed way and
//! compiles.
//!
//! The messages lie beside the cases; `TRYBUILD=overwrite` writes them anew after a change of compiler.

#[test]
fn stages_cannot_be_skipped_or_repeated() {
    let cases = trybuild::TestCases::new();
    cases.pass("suites/typestate/pass/*.rs");
    cases.compile_fail("suites/typestate/fail/*.rs");
}
