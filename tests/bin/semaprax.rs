//! The `semaprax` command, built for the suites.

fn main() -> std::process::ExitCode {
    semaprax_client::cli::main()
}
