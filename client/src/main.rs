//! The `semaprax` command.

fn main() -> std::process::ExitCode {
    semaprax_client::cli::main()
}
