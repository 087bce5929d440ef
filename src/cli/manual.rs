//! `completions` and `man`: what a shell and `man` read, made from the definition of the command line.

use std::{fs, path::Path};

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{
    Cli,
    context::{CommandError, Output},
};

/// Prints the completions for a shell.
pub(super) fn completions(shell: Shell) -> Output {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "countersign", &mut script);
    String::from_utf8_lossy(&script).into_owned().into()
}

/// Writes a manual page for each command.
///
/// # Errors
/// The directory or a file in it cannot be written.
pub(super) fn man(directory: &Path) -> Result<Output, CommandError> {
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .map_err(|error| {
            let about = format!("{}: cannot be written", directory.display());
            CommandError::from(error).about(about)
        })?;
    Ok(Output::default())
}
