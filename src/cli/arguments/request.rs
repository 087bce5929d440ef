//! The request that `sign` and `explain` are given: METHOD, URL, `--header` and `--data`.

use clap::Args;

use crate::{cli::context::CommandError, operator::explain::ParsedRequest};

/// The request that is signed or explained.
#[derive(Debug, Default, Args)]
pub struct RequestArgs {
    /// HTTP method, such as GET
    #[arg(value_name = "METHOD", default_value = "", hide_default_value = true)]
    pub method: String,

    /// Absolute URL as it is called, query included
    #[arg(value_name = "URL", default_value = "", hide_default_value = true)]
    pub url: String,

    /// Body; a form, unless --header 'Content-Type: …' says otherwise
    #[arg(long, value_name = "BODY", allow_hyphen_values = true)]
    pub data: Option<String>,

    /// Header field of the request, 'Name: value'; may be repeated
    #[arg(
        long = "header",
        short = 'H',
        value_name = "H",
        allow_hyphen_values = true
    )]
    pub headers: Vec<String>,
}

impl RequestArgs {
    /// Parses the request.
    pub(in crate::cli) fn request(&self) -> Result<ParsedRequest<'_>, CommandError> {
        ParsedRequest::new(&self.method, &self.url, &self.headers, self.data.as_deref())
            .map_err(CommandError::usage)
    }
}
