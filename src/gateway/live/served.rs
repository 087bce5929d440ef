//! What a request is for.

use crate::{
    request::{
        policy::operations::{Found, Operations},
        route::TokenCall,
    },
    telemetry::calls::record::{PAGE, UNLISTED},
};

/// The part of the service that a request is for.
#[derive(Debug, Clone, Copy)]
pub enum Served {
    /// It is rejected before that is known.
    Unknown,
    /// A token call.
    Token(TokenCall),
    /// A page.
    Page,
    /// A path of the API that no operation lists.
    Unlisted,
    /// A path that some API takes for one of an operation, which it does not match.
    Similar,
    /// A listed path with another method.
    OtherMethod,
    /// The operation with this index.
    Operation(usize),
}

impl Served {
    /// What a call to the API is for.
    pub const fn by(found: &Found<'_>) -> Self {
        match found {
            Found::Operation(operation) => Self::Operation(operation.index),
            Found::OtherMethod(_) => Self::OtherMethod,
            Found::Unlisted(_) => Self::Unlisted,
            Found::Similar { .. } => Self::Similar,
            Found::Ambiguous { .. } => Self::Unknown,
        }
    }

    /// Its name in logs and metrics.
    pub fn label(self, operations: &Operations) -> &str {
        match self {
            Self::Unknown => "none",
            Self::Unlisted => UNLISTED,
            Self::Similar => "similar",
            Self::OtherMethod => "other_method",
            Self::Token(TokenCall::RequestToken) => "request_token",
            Self::Token(TokenCall::AccessToken) => "access_token",
            Self::Token(TokenCall::RevokeToken) => "revoke_token",
            Self::Token(TokenCall::Exchange) => "exchange",
            Self::Page => PAGE,
            Self::Operation(index) => operations
                .labels()
                .get(index)
                .map_or("none", String::as_str),
        }
    }
}
