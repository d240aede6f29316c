//! `semaprax-bench`: how fast it is, each row against something else in the same run.
//!
//! ```text
//! semaprax-bench [--row P1 ...] [--quick] [--full] [--json FILE] [--plot DIR] [--program PATH]
//!                [--files N] [--large N] [--seed S] ...
//! ```
//!
//! Called with `daemon ...` it is the daemon under test itself, with `diff ...` its client.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Parser, ValueEnum as _};
use semaprax_tests::bench::curves::draw;
use semaprax_tests::bench::report::{document, table};
use semaprax_tests::bench::rows::measure;
use semaprax_tests::bench::{Measured, Row, Settings};

/// Files of the large tree with `--full`.
const FULL: u64 = 1_000_000;

/// Measures publications, leases and questions against other programs and against themselves.
#[derive(Debug, Parser)]
#[command(name = "semaprax-bench")]
struct Arguments {
    /// Only this row; may be given several times
    #[arg(long)]
    row: Vec<Row>,
    /// Fewer rounds and smaller trees: to see whether it runs, not to judge
    #[arg(long)]
    quick: bool,
    /// The rows about size with a tree of a million files: takes minutes, and 10 GB of disk
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Writes the document here [default: standard output]
    #[arg(long)]
    json: Option<Utf8PathBuf>,
    /// Draws the pictures into this directory instead
    #[arg(long)]
    plot: Option<Utf8PathBuf>,
    /// The program whose daemon is measured [default: this one]
    #[arg(long)]
    program: Option<PathBuf>,
    /// Files of the workspace
    #[arg(long, default_value_t = 20_000)]
    files: u64,
    /// Files in each directory
    #[arg(long, default_value_t = 20)]
    in_directory: u64,
    /// Files of the small tree of the rows about size
    #[arg(long, default_value_t = 10_000)]
    small: u64,
    /// Files of the large tree of the rows about size [default: 100,000; 40,000 with --quick; a
    /// million with --full]
    #[arg(long)]
    large: Option<u64>,
    /// Entries of the very large directory [default: 100,000; 10,000 with --quick]
    #[arg(long)]
    wide: Option<u64>,
    /// Rounds [default: 60; 15 with --quick]
    #[arg(long)]
    rounds: Option<usize>,
    /// Rounds of what takes seconds [default: 3; 1 with --quick]
    #[arg(long)]
    long_rounds: Option<usize>,
    /// Publications of the rows about growth and history [default: 1000; 100 with --quick]
    #[arg(long)]
    publications: Option<u64>,
    /// Clients that publish at once
    #[arg(long, default_value_t = 64)]
    clients: u64,
    /// Connections that watch
    #[arg(long, default_value_t = 1000)]
    subscribers: usize,
    /// Seconds an idle daemon is watched [default: 10; 3 with --quick]
    #[arg(long)]
    idle: Option<u64>,
    /// Where the workspaces are made
    #[arg(long, default_value_t = Utf8PathBuf::from("/var/tmp"))]
    directory: Utf8PathBuf,
    /// What decides about contents
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Arguments {
    fn settings(self) -> Measured<Settings> {
        // Said, or else by how much time there is.
        let large = match (self.full, self.quick) {
            (true, _) => FULL,
            (_, true) => 40_000,
            _ => 100_000,
        };
        let quick = self.quick;
        Ok(Settings {
            rows: if self.row.is_empty() {
                Row::value_variants().to_vec()
            } else {
                self.row
            },
            program: match self.program {
                Some(program) => program.canonicalize()?,
                None => std::env::current_exe()?,
            },
            directory: self.directory,
            files: self.files,
            in_directory: self.in_directory,
            sizes: (self.small, self.large.unwrap_or(large).max(self.small + 1)),
            wide: self.wide.unwrap_or(if quick { 10_000 } else { 100_000 }),
            rounds: self.rounds.unwrap_or(if quick { 15 } else { 60 }),
            long_rounds: self.long_rounds.unwrap_or(if quick { 1 } else { 3 }),
            publications: self.publications.unwrap_or(if quick { 100 } else { 1000 }),
            clients: self.clients.max(1),
            subscribers: self.subscribers,
            idle: Duration::from_secs(self.idle.unwrap_or(if quick { 3 } else { 10 })),
            seed: self.seed,
        })
    }
}

fn run() -> Measured<()> {
    let mut arguments = Arguments::parse();
    let (json, plot) = (arguments.json.take(), arguments.plot.take());
    let settings = arguments.settings()?;
    if let Some(directory) = plot {
        return draw(&settings, &directory);
    }
    let findings = measure(&settings)?;
    let document = format!("{:#}\n", document(&settings, &findings));
    match json {
        Some(file) => std::fs::write(file, document)?,
        None => print!("{document}"),
    }
    eprintln!("{}", table(&findings));
    Ok(())
}

fn main() -> ExitCode {
    let first = std::env::args().nth(1);
    if first.is_some_and(|word| word == "daemon" || word == "diff") {
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
