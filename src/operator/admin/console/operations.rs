//! Operations: the compiled table, and the operations that a path matches.

use super::{
    ConsoleRequest, PageParts, Result,
    page::{InputField, Section},
    parts::{Line, Table, line, tag},
};
use crate::request::policy::{
    access::{Access, CallerKind},
    conventions,
    operations::{Found, Operation, allowed_methods},
};

impl ConsoleRequest<'_> {
    pub(super) fn operations(&self) -> Result<PageParts> {
        let live = self.admin.shared.live.load();
        let operations = &live.authorizer.operations;
        let (method, tried) = (self.field("method"), self.field("path"));
        let method = if method.is_empty() { "GET" } else { method };
        let mut sections = vec![
            Section::Heading("Try a path".to_owned()),
            Section::search(
                "/operations",
                "Try",
                vec![
                    InputField::line("method", "Method", method),
                    InputField::line("path", "Path, as it is sent to the API's public URL", tried),
                ],
            ),
        ];
        if !tried.is_empty() {
            let path = tried.split(['?', '#']).next().unwrap_or_default();
            let path = if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("/{path}")
            };
            let mut facts =
                match operations.find(path.as_bytes(), method.to_ascii_uppercase().as_bytes()) {
                    Ok(found) => self.found(&found, live.authorizer.enforces()),
                    Err(rejection) => {
                        vec![("Rejected with 400", line(rejection.to_string()))]
                    }
                };
            if let Some(rule) = conventions::broken_rule(path.as_bytes()) {
                facts.push(("Path convention broken", line(rule)));
            }
            sections.push(Section::Facts(facts));
        }
        let row = |operation: &Operation| {
            vec![
                line(if operation.methods.is_empty() {
                    "any".to_owned()
                } else {
                    operation.methods.join(", ")
                }),
                line(operation.path.to_string()),
                line(
                    operation
                        .permission
                        .as_ref()
                        .map_or_else(|| "none needed".to_owned(), ToString::to_string),
                ),
                admitted(operation.access),
                line(enforcement(
                    operation.enforce.unwrap_or(live.authorizer.enforces()),
                )),
                line(rules(operation).join("; ")),
            ]
        };
        sections.push(Section::Heading("All operations".to_owned()));
        sections.push(Section::Table(Table {
            caption: "Operations in the order of the configuration".to_owned(),
            head: vec![
                "methods",
                "path",
                "permission",
                "who may call",
                "signatures",
                "own rules",
            ],
            rows: operations.listed().iter().map(row).collect(),
            empty: "No operation is configured: every path is treated alike.",
            next: None,
        }));
        let unlisted = [
            vec!["Every other path: ".into()],
            admitted(operations.unlisted()),
        ]
        .concat();
        sections.push(Section::Text(unlisted));
        Ok(("Operations".to_owned(), sections))
    }

    /// The facts about a match.
    fn found(&self, found: &Found<'_>, enforce: bool) -> Vec<(&'static str, Line)> {
        match found {
            Found::Operation(operation) => {
                let permission = operation.permission.as_ref();
                let permission = permission.map_or_else(
                    || "none is needed".to_owned(),
                    |name| format!("{name}, of the consumer and, if there is one, of its token"),
                );
                vec![
                    ("Operation", line(operation.path.to_string())),
                    ("Who may call", admitted(operation.access)),
                    ("Permission", line(permission)),
                    (
                        "Signatures",
                        line(enforcement(operation.enforce.unwrap_or(enforce))),
                    ),
                    (
                        "Own rules",
                        line(match rules(operation).join("; ") {
                            none if none.is_empty() => "none".to_owned(),
                            rules => rules,
                        }),
                    ),
                ]
            }
            Found::OtherMethod(others) => vec![
                (
                    "Operation",
                    line("none: the path is listed with other methods"),
                ),
                ("Methods", line(allowed_methods(others))),
                ("Who may call those", admitted(found.access())),
            ],
            Found::Unlisted(access) => vec![
                ("Operation", line("none lists this path")),
                ("Who may call", admitted(*access)),
                ("Signatures", line(enforcement(enforce))),
            ],
            Found::Similar(operation) => vec![
                (
                    "Operation",
                    line(format!(
                        "none: an API that ignores letter case, white space, dots or slashes at an end takes it for {}",
                        operation.path
                    )),
                ),
                ("Who may call", line("nobody (paths.similar)")),
            ],
        }
    }
}

/// The rules that an operation has in place of the general ones, or in addition to them.
fn rules(operation: &Operation) -> Vec<String> {
    let callers = operation.callers.demands().map(|(_, demand)| demand);
    let hash = operation.needs_body_hash;
    let hash = hash.then(|| "a body that is not a form needs oauth_body_hash".to_owned());
    let window = operation.timestamp_window;
    let window = window.map(|it| format!("timestamps within {}s", it.as_secs()));
    let forwarded = operation.forward_authorization.map(|is_forwarded| {
        let text = match is_forwarded {
            true => "the credentials go on to the API",
            false => "the credentials are taken out",
        };
        text.to_owned()
    });
    let headers = operation.headers.iter();
    let headers = headers.map(|it| format!("{} has {}", it.name, it.parameter));
    let launch = operation
        .launch
        .as_ref()
        .map(|sites| match sites.sources() {
            Some(sources) => {
                format!("a failed launch shows a page for its user, which {sources} may frame")
            }
            None => "a failed launch shows a page for its user, which no site may frame".to_owned(),
        });
    let rules = [hash, window, forwarded, launch].into_iter().flatten();
    callers.chain(rules).chain(headers).collect()
}

const fn enforcement(is_enforced: bool) -> &'static str {
    if is_enforced {
        "enforced"
    } else {
        "only observed"
    }
}

/// The kinds of caller.
fn admitted(access: Access) -> Line {
    let kinds = CallerKind::ALL
        .into_iter()
        .filter(|kind| access.admits(*kind));
    match Vec::from_iter(kinds.map(|kind| tag(kind.as_str(), "tag"))) {
        none if none.is_empty() => vec![tag("nobody", "tag bad")],
        kinds => kinds,
    }
}
