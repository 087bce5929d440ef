//! `countersign explain`: the signature doctor.

mod text;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::{Map, Value, json};

use crate::{
    cli::{
        arguments::{
            request::RequestArgs,
            signing_secrets::{Lookup, SecretArgs, read_pem},
        },
        context::{About as _, CommandError, Output},
        terminal::output,
    },
    oauth::RsaPublicKey,
    operator::{
        explain::{Explanation, ParsedRequest, Reading, RequestText, pasted},
        manage::view,
    },
};

/// Shows how a request has to be signed, and what is wrong with its signature
#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    request: RequestArgs,

    /// File with the whole request instead of METHOD and URL, or - for standard input: HTTP as it goes over the wire, or a
    /// curl command line
    #[arg(long = "request", value_name = "FILE", conflicts_with_all = ["method", "url", "data", "headers"])]
    pasted: Option<PathBuf>,

    #[command(flatten)]
    secrets: SecretArgs,

    /// PEM file with the consumer's public key, for the RSA methods [default: the store's]
    #[arg(long, value_name = "FILE")]
    rsa_public_key: Option<PathBuf>,

    /// Print secrets too, where the request or PLAINTEXT has them [default: they are hidden]
    #[arg(long)]
    show_secrets: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl ExplainArgs {
    /// Explains the request. `lookup` is asked for the secrets if the command line has none.
    ///
    /// The exit code is 1 if the server would reject the request. Time, nonce, accepted methods and the states of consumer
    /// and token count only where the secrets come from the store.
    pub fn run(
        &self,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<Output, CommandError> {
        let pasted = self.pasted.as_deref();
        let pasted = pasted.map(|path| read(path, stdin)).transpose()?;
        let request = match &pasted {
            Some(message) => message.request().map_err(CommandError::usage)?,
            None => self.request.request()?,
        };
        let explanation = self.explain(&request, lookup, stdin)?;
        let text = match self.json {
            true => output::json_line(&members(&explanation).into()),
            false => text::written(&explanation),
        };
        let code = u8::from(!explanation.is_accepted());
        Ok(Output {
            code,
            ..text.into()
        })
    }

    fn explain(
        &self,
        request: &ParsedRequest<'_>,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<Explanation, CommandError> {
        let reading = Reading::new(request);
        let known = match reading.asked() {
            Some(asked) => {
                let key = self.rsa_public_key.as_deref().map(|path| {
                    let option = format!("--rsa-public-key {}", path.display());
                    RsaPublicKey::from_pem(&read_pem(path, &option)?).about(option)
                });
                Ok(self.secrets.read(&asked, key.transpose()?, lookup, stdin)?)
            }
            None => Err(String::new()),
        };
        Ok(reading.explain(known, self.show_secrets))
    }
}

/// Reads the request from a file, or from standard input for `-`.
fn read(path: &Path, stdin: &mut dyn Read) -> Result<RequestText, CommandError> {
    /// The most bytes of a pasted request.
    const LONGEST: u64 = 1 << 20;

    let mut text = String::new();
    let read: io::Result<usize> = if path.as_os_str() == "-" {
        stdin.take(LONGEST).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text))
    };
    let option = format!("--request {}", path.display());
    read.about(&option)?;
    pasted::parse(&text).map_err(|problem| CommandError::usage(problem).about(option))
}

/// The members that `--json` promises.
fn members(explanation: &Explanation) -> Map<String, Value> {
    let mut members = view::members(&explanation.view());
    // Null without secrets, and for the RSA methods, whose signatures only the consumer can make.
    let expected = explanation.signature.as_ref().and_then(|examined| {
        let expected = examined.expected.as_deref()?;
        Some(explanation.mask.expected(examined.method, expected))
    });
    members.shift_insert(3, "expected_signature".to_owned(), json!(expected));
    members
}

#[cfg(test)]
mod tests;
