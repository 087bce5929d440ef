//! The operations of the API: by this table requests are routed and checked, and the OpenAPI document is written.

use http::Method;
use percent_encoding::percent_decode_str;

/// An operation: what a method does on a path.
pub(super) struct Operation {
    /// The method; HEAD is served as GET.
    pub(super) method: Method,
    /// What it does.
    pub(super) act: Act,
    /// What it does, in words.
    pub(super) summary: &'static str,
    /// The names of its query parameters.
    pub(super) query: &'static [&'static str],
    /// The schema of its body.
    pub(super) body: Option<&'static str>,
    /// The status of its success, and the schema of that response.
    pub(super) success: (u16, Option<&'static str>),
    /// The statuses of other responses than 401, 403, 421, 422, 429, 500 and 503.
    pub(super) failures: &'static [u16],
}

impl Operation {
    /// Whether it needs the token that writes.
    pub(super) fn writes(&self) -> bool {
        self.method != Method::GET
    }
}

/// What an operation does; its name is the `operationId`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "camelCase")]
pub(super) enum Act {
    ListConsumers,
    RegisterConsumer,
    ShowConsumer,
    ChangeConsumer,
    RemoveConsumer,
    RotateSecret,
    EndGrace,
    ListUsers,
    AddUser,
    ShowUser,
    ChangeUser,
    RemoveUser,
    SetPassword,
    ListSessions,
    EndSessions,
    ListTokens,
    IssueToken,
    RevokeTokens,
    ShowToken,
    RevokeToken,
    ListRejections,
    Explain,
    DescribeApi,
}

/// A path with at most one variable segment, and its operations.
pub(super) struct Route {
    /// The path as OpenAPI writes it.
    pub(super) path: &'static str,
    /// The operations.
    pub(super) operations: &'static [Operation],
}

impl Route {
    /// The variable segment of a path that is this one, decoded; empty if there is none.
    pub(super) fn segment(&self, path: &str) -> Option<String> {
        let Some((before, rest)) = self.path.split_once('{') else {
            return (self.path == path).then(String::new);
        };
        let after = rest.split_once('}').map_or("", |(_, after)| after);
        let segment = path.strip_prefix(before)?.strip_suffix(after)?;
        if segment.is_empty() || segment.contains('/') {
            return None;
        }
        let decoded = percent_decode_str(segment).decode_utf8();
        // What is not UTF-8 is the name of nothing.
        Some(decoded.map_or_else(|_| "\u{fffd}".to_owned(), Into::into))
    }

    /// The value of `Allow`.
    pub(super) fn allow(&self) -> String {
        let methods = self.operations.iter().map(|one| one.method.as_str());
        let methods: Vec<&str> = methods.collect();
        methods.join(", ").replacen("GET", "GET, HEAD", 1)
    }
}

/// The one body that may be left out.
pub(super) const OPTIONAL: &str = "Rotation";

const PAGE: [&str; 2] = ["limit", "cursor"];

/// Every path.
pub(super) static ROUTES: [Route; 13] = [
    Route {
        path: "/v1/openapi.json",
        operations: &[Operation {
            method: Method::GET,
            act: Act::DescribeApi,
            summary: "Describes this API",
            query: &[],
            body: None,
            success: (200, Some("Document")),
            failures: &[],
        }],
    },
    Route {
        path: "/v1/consumers",
        operations: &[
            Operation {
                method: Method::GET,
                act: Act::ListConsumers,
                summary: "Lists consumers by their keys",
                query: &["q", "enabled", "unused_for", PAGE[0], PAGE[1]],
                body: None,
                success: (200, Some("ConsumerPage")),
                failures: &[],
            },
            Operation {
                method: Method::POST,
                act: Act::RegisterConsumer,
                summary: "Registers a consumer, and shows its secret this once",
                query: &[],
                body: Some("NewConsumer"),
                success: (201, Some("IssuedConsumer")),
                failures: &[409],
            },
        ],
    },
    Route {
        path: "/v1/consumers/{key}",
        operations: &[
            Operation {
                method: Method::GET,
                act: Act::ShowConsumer,
                summary: "Shows a consumer",
                query: &[],
                body: None,
                success: (200, Some("Consumer")),
                failures: &[404],
            },
            Operation {
                method: Method::PATCH,
                act: Act::ChangeConsumer,
                summary: "Changes a consumer by a JSON Merge Patch",
                query: &[],
                body: Some("ConsumerPatch"),
                success: (200, Some("Consumer")),
                failures: &[404, 409, 412],
            },
            Operation {
                method: Method::DELETE,
                act: Act::RemoveConsumer,
                summary: "Removes a consumer with all its tokens; its key is never used again",
                query: &[],
                body: None,
                success: (204, None),
                failures: &[404, 412],
            },
        ],
    },
    Route {
        path: "/v1/consumers/{key}/secret",
        operations: &[Operation {
            method: Method::POST,
            act: Act::RotateSecret,
            summary: "Gives a consumer a new secret, and shows it this once",
            query: &[],
            body: Some(OPTIONAL),
            success: (200, Some("IssuedConsumer")),
            failures: &[404, 412],
        }],
    },
    Route {
        path: "/v1/consumers/{key}/secret/previous",
        operations: &[Operation {
            method: Method::DELETE,
            act: Act::EndGrace,
            summary: "Ends the grace of the previous secret",
            query: &[],
            body: None,
            success: (204, None),
            failures: &[404, 412],
        }],
    },
    Route {
        path: "/v1/users",
        operations: &[
            Operation {
                method: Method::GET,
                act: Act::ListUsers,
                summary: "Lists users by their ids",
                query: &["q", "enabled", PAGE[0], PAGE[1]],
                body: None,
                success: (200, Some("UserPage")),
                failures: &[],
            },
            Operation {
                method: Method::POST,
                act: Act::AddUser,
                summary: "Makes an account, with or without a password",
                query: &[],
                body: Some("NewUser"),
                success: (201, Some("User")),
                failures: &[409],
            },
        ],
    },
    Route {
        path: "/v1/users/{id}",
        operations: &[
            Operation {
                method: Method::GET,
                act: Act::ShowUser,
                summary: "Shows a user",
                query: &[],
                body: None,
                success: (200, Some("User")),
                failures: &[404],
            },
            Operation {
                method: Method::PATCH,
                act: Act::ChangeUser,
                summary: "Changes a user by a JSON Merge Patch; disabling ends sessions and access tokens for good",
                query: &[],
                body: Some("UserPatch"),
                success: (200, Some("User")),
                failures: &[404, 409, 412],
            },
            Operation {
                method: Method::DELETE,
                act: Act::RemoveUser,
                summary: "Removes a user with sessions and access tokens; the id is never used again",
                query: &[],
                body: None,
                success: (204, None),
                failures: &[404, 412],
            },
        ],
    },
    Route {
        path: "/v1/users/{id}/password",
        operations: &[Operation {
            method: Method::PUT,
            act: Act::SetPassword,
            summary: "Sets a password and ends the user's sessions",
            query: &[],
            body: Some("NewPassword"),
            success: (204, None),
            failures: &[404, 412],
        }],
    },
    Route {
        path: "/v1/users/{id}/sessions",
        operations: &[
            Operation {
                method: Method::GET,
                act: Act::ListSessions,
                summary: "Lists the open sessions of a user, the newest first",
                query: &PAGE,
                body: None,
                success: (200, Some("SessionPage")),
                failures: &[404],
            },
            Operation {
                method: Method::DELETE,
                act: Act::EndSessions,
                summary: "Ends all sessions of a user",
                query: &[],
                body: None,
                success: (204, None),
                failures: &[404, 412],
            },
        ],
    },
    Route {
        path: "/v1/tokens",
        operations: &[
            Operation {
                method: Method::GET,
                act: Act::ListTokens,
                summary: "Lists access tokens that are not revoked; with unused_for the longest unused first",
                query: &["consumer", "user", "unused_for", PAGE[0], PAGE[1]],
                body: None,
                success: (200, Some("TokenPage")),
                failures: &[],
            },
            Operation {
                method: Method::POST,
                act: Act::IssueToken,
                summary: "Issues an access token without the browser flow, and shows its secret this once",
                query: &[],
                body: Some("NewToken"),
                success: (201, Some("IssuedToken")),
                failures: &[404, 409],
            },
            Operation {
                method: Method::DELETE,
                act: Act::RevokeTokens,
                summary: "Revokes the access tokens of a consumer, of a user, or unused ones; needs one of these at least",
                query: &["consumer", "user", "unused_for"],
                body: None,
                success: (200, Some("Revoked")),
                failures: &[],
            },
        ],
    },
    Route {
        path: "/v1/tokens/{token}",
        operations: &[
            Operation {
                method: Method::GET,
                act: Act::ShowToken,
                summary: "Shows an access token, named whole or by its first 8 characters",
                query: &[],
                body: None,
                success: (200, Some("Token")),
                failures: &[404, 409],
            },
            Operation {
                method: Method::DELETE,
                act: Act::RevokeToken,
                summary: "Revokes an access token for good",
                query: &[],
                body: None,
                success: (204, None),
                failures: &[404, 409, 412],
            },
        ],
    },
    Route {
        path: "/v1/rejections",
        operations: &[Operation {
            method: Method::GET,
            act: Act::ListRejections,
            summary: "Lists the last 1,000 rejected or failed calls of this process, the newest first",
            query: &PAGE,
            body: None,
            success: (200, Some("RejectionPage")),
            failures: &[],
        }],
    },
    Route {
        path: "/v1/explain",
        operations: &[Operation {
            method: Method::POST,
            act: Act::Explain,
            summary: "Explains how a request has to be signed, and what is wrong with its signature",
            query: &[],
            body: Some("RawRequest"),
            success: (200, Some("Explanation")),
            failures: &[],
        }],
    },
];
