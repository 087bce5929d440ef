//! A new password: asked for on the terminal, or read from standard input.

use std::io::{self, Read as _};

use crate::{
    base::{secret::Secret, text::longest},
    cli::{
        arguments::secret_source::SecretArg,
        context::{About as _, CommandError, Context},
    },
    provider::login::{new_password, password},
    records::values::record::User,
};

/// The source of a new password.
#[derive(Debug, clap::Args)]
pub struct PasswordArgs {
    /// Read the password from standard input rather than ask for it on the terminal
    #[arg(long)]
    password_stdin: bool,
    /// Let the user keep this password, rather than choose another one after the next login
    #[arg(long)]
    pub permanent: bool,
}

impl PasswordArgs {
    /// Reads the password of `user` and hashes it. Warns of one that the pages would reject.
    ///
    /// # Errors
    /// [`CommandError`]: the password is missing or too long, or the second one differs.
    pub fn hash(&self, context: &Context, user: &User) -> Result<Secret, CommandError> {
        if self.password_stdin {
            // The longest password, its newline, and one byte more to detect that it is too long.
            const ENOUGH: u64 = longest::PASSWORD as u64 + 3;
            let password = SecretArg::Stdin.read(&mut io::stdin().take(ENOUGH))?;
            return hashed(&password, context, user);
        }
        // Asks on the terminal, without echo, whatever standard input and output are.
        let ask = |prompt| {
            let typed = rpassword::prompt_password(prompt);
            typed.about("there is no terminal to ask for the password on; use --password-stdin")
        };
        let password = Secret::from(ask("Password: ")?);
        if password != Secret::from(ask("Repeat password: ")?) {
            let problem = "the two passwords differ, nothing is changed; try again";
            return Err(CommandError::failed(problem));
        }
        hashed(&password, context, user)
    }
}

fn hashed(password: &Secret, context: &Context, user: &User) -> Result<Secret, CommandError> {
    let hash = password::hash(password)?;
    if let Err(weakness) = new_password::check(password, None, user) {
        context.warn(&format!(
            "the password {weakness}; set another one with countersign user passwd"
        ));
    }
    Ok(hash)
}
