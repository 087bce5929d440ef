//! The admin API of the running process, as commands ask it.

use serde_json::Value;
use zeroize::Zeroizing;

use super::health;
use crate::{
    cli::context::{About as _, CommandError},
    oauth::percent,
    run::{app::StartError, config::Config},
    wire::address::ListenAddress,
};

/// The admin listener, and the field with a token that may read.
pub(in crate::cli) struct AdminApi<'a> {
    listen: &'a ListenAddress,
    fields: Zeroizing<String>,
    /// What else to do, for errors.
    otherwise: &'static str,
}

impl<'a> AdminApi<'a> {
    /// The API of the process with this configuration; `otherwise` says what to do without it.
    ///
    /// # Errors
    /// The API is off, or its token cannot be read.
    pub(in crate::cli) fn new(
        config: &'a Config,
        otherwise: &'static str,
    ) -> Result<Self, CommandError> {
        let token = config.admin.any_token().map_err(StartError::from)?;
        let token = token.ok_or_else(|| {
            CommandError::failed(format!(
                "the admin API is off: set admin.token_file{otherwise}"
            ))
        })?;
        let fields = format!("Authorization: Bearer {}\r\n", *token.expose_text());
        Ok(Self {
            listen: &config.admin.listen,
            fields: Zeroizing::new(fields),
            otherwise,
        })
    }

    /// Asks for a page; `None`: there is no such thing.
    ///
    /// # Errors
    /// The process does not answer, or not with JSON.
    pub(in crate::cli) fn get(&self, page: &str) -> Result<Option<Value>, CommandError> {
        let (listen, otherwise) = (self.listen, self.otherwise);
        let answer = health::ask(listen, page, &self.fields).map_err(|error| {
            let text = format!("admin.listen: {listen}: {error}; is serve running?{otherwise}");
            CommandError::failed(text)
        })?;
        match answer {
            (200, body) => Ok(Some(serde_json::from_str(&body).about("the admin API")?)),
            (404, _) => Ok(None),
            (401, _) => Err(CommandError::failed(
                "the running process does not accept the token of the file; reload it, for it has read another one",
            )),
            (status, body) => Err(CommandError::failed(format!(
                "the admin API answers {status}: {body}"
            ))),
        }
    }

    /// All items of a list; `page` is its path, and its query if there is one.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(in crate::cli) fn items(&self, page: &str) -> Result<Vec<Value>, CommandError> {
        let joint = if page.contains('?') { '&' } else { '?' };
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{page}{joint}limit=100{cursor}"))?;
            let mut page = page.unwrap_or_default();
            if let Value::Array(items) = page["items"].take() {
                all.extend(items);
            }
            match page["next"].as_str() {
                Some(next) => {
                    cursor = format!("&cursor={}", percent::encode(next.as_bytes()));
                }
                None => return Ok(all),
            }
        }
    }
}
