//! `rekey`: every secret of the store is sealed with the first key of `store.encryption_key_file`.

use std::time::Instant;

use serde_json::json;

use crate::cli::{
    context::{CommandError, Context},
    terminal::progress::{Progress, took},
};
pub(in crate::cli) const HELP: &str = "\
To change the key: write store.encryption_key_file = [\"new.key\", \"old.key\"], restart serve, run this command, then leave \
old.key out. With several replicas every one has to know both keys first: begin with [\"old.key\", \"new.key\"] on all of \
them. serve keeps running. To encrypt a store that is not: stop serve, name the key, run this command, start serve. The \
command can be interrupted and repeated.";

/// Runs the command.
///
/// # Errors
/// No key is configured, the store fails, or a secret is sealed with a key that is not configured.
pub(in crate::cli) async fn execute(context: &Context) -> Result<String, CommandError> {
    if context.config.store.encryption_key_file.is_empty() {
        return Err(CommandError::usage(
            "store.encryption_key_file: names no key; make one with openssl rand -out FILE 32 and name the file",
        ));
    }
    let begun = Instant::now();
    let mut progress = Progress::new("secrets", 0);
    let operator = context.operator()?;
    let all = operator.rekey(|seen| progress.at(seen, 0)).await?;
    drop(progress);
    let unopened = all.unopened_count();
    let rekeyed = all.older - unopened;
    if let Some((_, example)) = all.unopened {
        return Err(CommandError::failed(format!(
            "{rekeyed} secrets were encrypted with the first key; {unopened} cannot be decrypted and were not changed: {example}"
        )));
    }
    let unchanged = all.seen - all.older;
    let text = format!(
        "Encrypted {rekeyed} secrets with the first key in {}; {unchanged} had it already.",
        took(begun)
    );
    Ok(context.told(
        &json!({ "rekeyed": rekeyed, "unchanged": unchanged }),
        &text,
    ))
}
