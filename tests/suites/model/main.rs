//! Random sequences of everything a workspace is asked, against the reference model; after each step
//! the oracle compares the workspace with it.
//!
//! The number of sequences is `PROPTEST_CASES` (24 without it).

mod run;
mod spares;
mod step;
mod together;

use proptest::prelude::*;
use proptest::test_runner::Config;

use run::Run;
use step::step;

fn config() -> Config {
    Config {
        cases: std::env::var("PROPTEST_CASES")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(24),
        // Sequences are short already, and each try takes a workspace of its own.
        max_shrink_iters: 200,
        failure_persistence: Some(Box::new(
            proptest::test_runner::FileFailurePersistence::WithSource("regressions"),
        )),
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_sequence_leaves_what_the_model_says(steps in prop::collection::vec(step(), 1..14)) {
        let mut run = Run::new();
        for step in &steps {
            run.take(step);
        }
    }
}
