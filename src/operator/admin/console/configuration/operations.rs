//! Operations: the compiled table, and the operations that a path matches.

use askama::Template;
use strum::VariantArray as _;

use crate::{
    base::text::names::ConsumerKey,
    operator::admin::console::{
        ConsoleRequest, Result,
        page::{ConsoleFrame, InputField, show},
        parts::{Named, Tag},
    },
    provider::respond::OwnResponse,
    records::values::record::{BodyHash, Consumer},
    request::{
        parse::target::RequestTarget,
        policy::{
            access::{Access, CallerKind},
            conventions,
            operations::{Found, Operation, allowed_methods, allowed_networks, frame_ancestors},
        },
    },
};

/// The columns of the operations; the last one only if an operation has rules.
const HEADS: [&str; 6] = [
    "methods",
    "path",
    "permission",
    "who may call",
    "signatures",
    "own rules",
];

#[derive(Template)]
#[template(path = "console/operations.html")]
struct OperationsPage<'a> {
    frame: ConsoleFrame<'a>,
    fields: [InputField; 3],
    /// What happens to a call of the path that was tried.
    answer: Option<String>,
    /// What happens to a call of the chosen consumer.
    outcome_for: Option<String>,
    /// The consumers that a part of a name fits, if there are several.
    several: Vec<Named>,
    facts: Vec<(&'static str, String)>,
    heads: &'static [&'static str],
    operations: Vec<OperationRow>,
    unlisted: Vec<Tag>,
}

struct OperationRow {
    methods: String,
    path: String,
    permission: String,
    admitted: Vec<Tag>,
    signatures: &'static str,
    rules: String,
}

impl ConsoleRequest<'_> {
    pub(crate) async fn operations(&self) -> Result<OwnResponse> {
        let live = self.admin.shared.live.load();
        let (operations, enforces) = (&live.authorizer.operations, live.authorizer.enforces());
        let (method, tried) = (self.field("method"), self.field("path"));
        let method = if method.is_empty() { "GET" } else { method };
        let (mut answer, mut outcome_for, mut facts) = (None, None, Vec::new());
        let (as_consumer, several) = self.meant("consumer").await?;
        if !tried.is_empty() {
            let path = tried.split(['?', '#']).next().unwrap_or_default();
            let path = match path.starts_with('/') {
                true => path.to_owned(),
                false => format!("/{path}"),
            };
            let method = method.to_ascii_uppercase();
            let found = operations.find(path.as_bytes(), method.as_bytes());
            answer = Some(format!("{method} {path}: {}.", outcome(&found)));
            let one = as_consumer.as_ref().filter(|_| several.is_empty());
            if let Some(text) = one.filter(|_| found.check_path().is_ok()) {
                let consumer = match text.parse::<ConsumerKey>() {
                    Ok(key) => self.backend.manage.consumer(&key).await.map(Some),
                    Err(_) => Ok(None),
                };
                outcome_for = Some(match consumer {
                    Ok(Some(consumer)) => for_consumer(&found, &consumer),
                    Err(error) if error.status() >= 500 => return Err(error.into()),
                    Ok(None) | Err(_) => {
                        format!("No consumer has “{text}” as its key or in its name.")
                    }
                });
            }
            let query = tried
                .split('#')
                .next()
                .and_then(|target| target.split_once('?'));
            let target = RequestTarget {
                absolute: None,
                path: path.as_bytes(),
                query: query.map(|(_, query)| query.as_bytes()),
            };
            let is_enforced = live.authorizer.is_enforced(&found, &target);
            facts = about(&found, is_enforced);
            if let Some(rule) = conventions::broken_rule(path.as_bytes()) {
                facts.push(("Path convention broken", rule.to_string()));
            }
        }
        let row = |operation: &Operation| OperationRow {
            methods: match &operation.methods()[..] {
                [] => "any".to_owned(),
                methods => methods.join(", "),
            },
            path: operation.rules.path.to_string(),
            permission: match &operation.rules.permission {
                None => "none needed".to_owned(),
                Some(permission) => permission.to_string(),
            },
            admitted: admitted(operation.access),
            signatures: enforcement(operation.is_enforced(enforces)),
            rules: rules(operation).join("; "),
        };
        let rows = Vec::from_iter(operations.listed().iter().map(row));
        let page = OperationsPage {
            frame: self.shell.frame("Operations"),
            fields: [
                InputField::line("method", "Method", method),
                InputField::line("path", "Path, as it is sent to the API's public URL", tried),
                InputField::line(
                    "consumer",
                    "As consumer: its key or part of its name",
                    self.field("consumer"),
                ),
            ],
            answer,
            outcome_for,
            several,
            facts,
            heads: match rows.iter().all(|row| row.rules.is_empty()) {
                true => &HEADS[..5],
                false => &HEADS,
            },
            operations: rows,
            unlisted: admitted(operations.unlisted()),
        };
        Ok(show(200, &page))
    }
}

/// What happens to a signed call of a consumer.
fn for_consumer(found: &Found<'_>, consumer: &Consumer) -> String {
    let name = &consumer.name;
    let kinds = [
        (CallerKind::Application, "without a token"),
        (CallerKind::Consumer, "with the token of a user"),
    ];
    let access = found.access();
    let admitted = kinds.into_iter().filter(|(kind, _)| access.admits(*kind));
    let admitted = Vec::from_iter(admitted.map(|(_, how)| how));
    let permission = found.rules().and_then(|it| it.permission.as_ref());
    if !consumer.enabled {
        return format!("{name} gets 401: it is disabled.");
    }
    if found.is_closed() || admitted.is_empty() {
        return format!("{name} is rejected.");
    }
    let how = admitted.join(" or ");
    match permission {
        Some(needed) if !consumer.permissions.contains(needed) => {
            format!("{name} is rejected: it does not have the permission {needed}.")
        }
        Some(needed) => format!("{name} is forwarded {how}; a token needs {needed} too."),
        None => format!("{name} is forwarded {how}."),
    }
}

/// The names of the kinds of caller that are admitted.
fn kinds(access: Access) -> impl Iterator<Item = &'static str> {
    let kinds = CallerKind::VARIANTS.iter().copied();
    kinds
        .filter(move |kind| access.admits(*kind))
        .map(CallerKind::as_str)
}

/// The kinds of caller in a sentence.
fn callers(access: Access) -> String {
    match Vec::from_iter(kinds(access)) {
        none if none.is_empty() => "nobody".to_owned(),
        kinds => kinds.join(" or "),
    }
}

/// What happens to a call.
fn outcome(found: &Found<'_>) -> String {
    match found {
        Found::Operation(operation) => match &operation.rules.permission {
            Some(permission) => format!(
                "forwarded for {} with the permission {permission}, rejected for anybody else",
                callers(operation.access)
            ),
            None => format!(
                "forwarded for {}, rejected for anybody else",
                callers(operation.access)
            ),
        },
        Found::OtherMethod(_) => "rejected: the path is listed with other methods".to_owned(),
        Found::Unlisted(access) => format!(
            "none lists this path: forwarded for {}, rejected for anybody else",
            callers(*access)
        ),
        Found::Similar { .. } => {
            "rejected, because it resembles the path of an operation".to_owned()
        }
        Found::Ambiguous { .. } => "Rejected with 400".to_owned(),
    }
}

/// The facts about a match.
fn about(found: &Found<'_>, is_enforced: bool) -> Vec<(&'static str, String)> {
    let signatures = ("Signatures", enforcement(is_enforced).to_owned());
    match found {
        Found::Operation(operation) => {
            let permission = operation.rules.permission.as_ref();
            let permission = permission.map_or_else(
                || "none is needed".to_owned(),
                |name| format!("{name}, of the consumer and, if there is one, of its token"),
            );
            let own = Some(rules(operation).join("; ")).filter(|rules| !rules.is_empty());
            vec![
                ("Operation", operation.rules.path.to_string()),
                ("Who may call", callers(operation.access)),
                ("Permission", permission),
                signatures,
                ("Own rules", own.unwrap_or_else(|| "none".to_owned())),
            ]
        }
        Found::OtherMethod(others) => vec![
            ("Methods", allowed_methods(others)),
            ("Who may call those", callers(found.access())),
            signatures,
        ],
        Found::Unlisted(access) => vec![("Who may call", callers(*access)), signatures],
        Found::Similar { resembled, .. } => vec![
            (
                "Why",
                format!(
                    "an API that ignores letter case, white space, dots, slashes or an extension at an end, or that splits segments elsewhere, takes it for {} (paths.similar)",
                    resembled.rules.path
                ),
            ),
            signatures,
        ],
        Found::Ambiguous { reason, .. } => {
            let setting = reason
                .setting()
                .map(|key| format!("; {key} = \"data\" permits it"));
            vec![
                ("Why", format!("{reason}{}", setting.unwrap_or_default())),
                signatures,
            ]
        }
    }
}

/// The rules that an operation has instead of the general ones, or in addition to them.
fn rules(operation: &Operation) -> Vec<String> {
    let from = &operation.rules.from;
    let callers = (!from.is_empty()).then(|| allowed_networks(from));
    let hash = operation.rules.body_hash == BodyHash::Required;
    let hash = hash.then(|| "a body that is not a form needs oauth_body_hash".to_owned());
    let window = operation.rules.timestamp_window;
    let window = window.map(|it| format!("timestamps within {}s", it.as_secs()));
    let forwarded = operation.credentials().map(str::to_owned);
    let headers = operation.rules.headers.0.iter();
    let headers = headers.map(|it| format!("{} has {}", it.name, it.parameter));
    let launch = operation.rules.launch.then(|| {
        let sites = frame_ancestors::sources(&operation.rules.framed_by);
        let sites = sites.as_deref().unwrap_or("no site");
        format!("a failed launch shows a page for its user, which {sites} may frame")
    });
    let rules = [hash, window, forwarded, launch].into_iter().flatten();
    callers.into_iter().chain(rules).chain(headers).collect()
}

const fn enforcement(is_enforced: bool) -> &'static str {
    if is_enforced {
        "enforced"
    } else {
        "only observed"
    }
}

/// The kinds of caller, each in a frame.
fn admitted(access: Access) -> Vec<Tag> {
    match Vec::from_iter(kinds(access).map(|kind| Tag::new(kind, ""))) {
        none if none.is_empty() => vec![Tag::new("nobody", "bad")],
        kinds => kinds,
    }
}
