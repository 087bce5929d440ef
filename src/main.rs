//! The `countersign` binary: see [`countersign::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    countersign::cli::main()
}
