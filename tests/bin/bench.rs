//! `semaprax-bench`: how fast it is, each row against something else in the same run.
//!
//! ```text
//! semaprax-bench [--row P1 ...] [--quick] [--program PATH] [--files N] [--seed S]
//! ```
//!
//! Called with `daemon ...` it is the daemon under test itself.

use std::path::PathBuf;
use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::{Parser, ValueEnum as _};
use semaprax_tests::bench::report::{document, table};
use semaprax_tests::bench::rows::measure;
use semaprax_tests::bench::{Measured, Row, Settings};

/// Measures publications against git and against a bare loop with the same syncs.
#[derive(Debug, Parser)]
#[command(name = "semaprax-bench")]
struct Arguments {
    /// Only this row; may be given several times
    #[arg(long)]
    row: Vec<Row>,
    /// Fewer rounds: to see whether it runs, not to judge
    #[arg(long)]
    quick: bool,
    /// The program whose daemon is measured [default: this one]
    #[arg(long)]
    program: Option<PathBuf>,
    /// Files of the workspace
    #[arg(long, default_value_t = 20_000)]
    files: u64,
    /// Files in each directory
    #[arg(long, default_value_t = 20)]
    in_directory: u64,
    /// Rounds
    #[arg(long, default_value_t = 60)]
    rounds: usize,
    /// Where the workspaces are made
    #[arg(long, default_value_t = Utf8PathBuf::from("/var/tmp"))]
    directory: Utf8PathBuf,
    /// What decides about contents
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn run() -> Measured<()> {
    let arguments = Arguments::parse();
    let all = Row::value_variants().to_vec();
    let settings = Settings {
        rows: if arguments.row.is_empty() {
            all
        } else {
            arguments.row
        },
        program: match arguments.program {
            Some(program) => program.canonicalize()?,
            None => std::env::current_exe()?,
        },
        directory: arguments.directory,
        files: arguments.files,
        in_directory: arguments.in_directory,
        rounds: if arguments.quick {
            arguments.rounds.min(15)
        } else {
            arguments.rounds
        },
        seed: arguments.seed,
    };
    let findings = measure(&settings)?;
    println!("{:#}", document(&settings, &findings));
    eprintln!("{}", table(&findings));
    Ok(())
}

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|word| word == "daemon") {
        return semaprax_client::cli::main();
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("semaprax-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
