//! A new password: asked for on the terminal, or read from standard input.

use std::io::{self, Read as _};

use super::{
    context::{CommandError, Context},
    secret_arg::SecretArg,
};
use crate::{
    login::{new_password, password},
    secret::Secret,
    store::record::User,
};

/// Where a command gets a new password from.
#[derive(Debug, clap::Args)]
pub struct PasswordArgs {
    /// Read the password from standard input rather than ask for it on the terminal
    #[arg(long)]
    password_stdin: bool,
}

impl PasswordArgs {
    /// Reads the password of `user` and hashes it. Warns of a typed one that the pages would reject.
    ///
    /// # Errors
    /// [`CommandError`]: the password is missing or too long, or the second one differs.
    pub fn hash(&self, context: &Context, user: &User) -> Result<Secret, CommandError> {
        let password = if self.password_stdin {
            from_stdin()?
        } else {
            from_terminal()?
        };
        let hash = password::hash(&password)?;
        let weakness = new_password::check(&password, None, user).err();
        if let Some(weakness) = weakness.filter(|_| !self.password_stdin) {
            context.warn(&format!(
                "the password {weakness}; set another one with countersign user passwd"
            ));
        }
        Ok(hash)
    }
}

/// All of standard input, but for one final newline.
fn from_stdin() -> Result<Secret, CommandError> {
    // The longest password, its newline, and one byte more to detect that it is too long.
    const ENOUGH: u64 = password::MAX_BYTES as u64 + 3;
    SecretArg::Stdin.read(&mut io::stdin().take(ENOUGH))
}

/// Asks twice on the terminal, without echo, whatever standard input and output are.
fn from_terminal() -> Result<Secret, CommandError> {
    let ask = |prompt| {
        rpassword::prompt_password(prompt)
            .map(Secret::from)
            .map_err(|error| {
                let what = "there is no terminal to ask for the password on; use --password-stdin";
                CommandError::from(error).about(what)
            })
    };
    let password = ask("Password: ")?;
    if password != ask("Repeat password: ")? {
        let problem = "the two passwords differ, nothing is changed; try again";
        return Err(CommandError::failed(problem));
    }
    Ok(password)
}
