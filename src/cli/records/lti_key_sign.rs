//! `lti-key-sign`: the proof of a platform of LTI 1.3 that it has the secret of a key of LTI 1.1.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::consumer::named;
use crate::{
    cli::context::{About as _, CommandError, Context, Output, RecordArgs},
    operator::manage::LaunchClaims,
    records::values::Opening,
};

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// File with the claims of a launch as JSON, or with its id_token, whose signature is not checked; - for standard input
    #[arg(value_name = "FILE")]
    claims: PathBuf,
    /// Print the claim for this launch, as a platform makes it, and check none
    #[arg(long)]
    make: bool,
    #[command(flatten)]
    records: RecordArgs,
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// The claims cannot be read, or prove nothing.
    pub(in crate::cli) fn run(&self) -> Result<Output, CommandError> {
        let claims = LaunchClaims::read(read(&self.claims)?).map_err(CommandError::usage)?;
        let RecordArgs { store, json } = &self.records;
        store.run(*json, Opening::Existing, async |context| {
            execute(&claims, self.make, context).await
        })
    }
}

async fn execute(
    claims: &LaunchClaims,
    make: bool,
    context: &Context,
) -> Result<String, CommandError> {
    let manage = context.manage()?;
    if make {
        let sign = manage.make_key_sign(claims).await?;
        return Ok(context.told(&json!({ "oauth_consumer_key_sign": sign }), &sign));
    }
    let consumer = manage.check_key_sign(claims).await?;
    let text = format!("The platform has the secret of {}.", named(&consumer));
    Ok(context.told(&json!({ "consumer": consumer.key }), &text))
}

/// Reads the claims from a file, or from standard input for `-`.
fn read(path: &Path) -> Result<Value, CommandError> {
    /// The most bytes of an id_token.
    const LONGEST: u64 = 64 << 10;

    let mut text = String::new();
    let read: io::Result<usize> = if path.as_os_str() == "-" {
        io::stdin().take(LONGEST).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text))
    };
    read.about(path.display())?;
    // The second part of a JWT has the claims.
    let claims = match text.trim_start().starts_with('{') {
        true => text.into_bytes(),
        false => {
            let part = text.trim().split('.').nth(1).unwrap_or_default();
            URL_SAFE_NO_PAD.decode(part).unwrap_or_default()
        }
    };
    let problem = |_| CommandError::usage("it is neither a JSON object nor a JWT");
    serde_json::from_slice(&claims)
        .map_err(problem)
        .about(path.display())
}
