//! The one page that shows a secret, with all that the consumer's developer needs.

use askama::Template;

use crate::{
    base::{clock::UnixTime, secret::Secret},
    oauth::SignatureMethod,
    operator::admin::console::{
        ConsoleRequest,
        page::{ConsoleFrame, show},
        parts::{path, time},
    },
    provider::{issue::callback::OOB, respond::OwnResponse},
    records::values::record::{Consumer, Dialect, User},
    request::{
        policy::{access::CallerKind, operations::Operation},
        route::{Page, ServiceCall, TokenCall},
    },
};

/// Programs that make a signed call: title, id and text. The values to fill in are `@KEY@`, `@SECRET@`, `@URL@`, `@CALLBACK@` and
/// `@OPEN@`; keys, random secrets and URLs have no character that a string literal would have to escape. A line that ends with
/// `@api` is of a call of the API, and one with `@flow` of the call for a request token.
const SNIPPETS: [(&str, &str, &str); 5] = [
    (
        "Python: requests-oauthlib",
        "python",
        include_str!("../../../../../templates/console/snippets/requests.py"),
    ),
    (
        "Node: oauth-1.0a",
        "node",
        include_str!("../../../../../templates/console/snippets/oauth.js"),
    ),
    (
        "PHP",
        "php",
        include_str!("../../../../../templates/console/snippets/call.php"),
    ),
    (
        "Java",
        "java",
        include_str!("../../../../../templates/console/snippets/Call.java"),
    ),
    (
        "curl, with countersign sign",
        "curl",
        include_str!("../../../../../templates/console/snippets/curl.sh"),
    ),
];

/// The reason why there is a new secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandedOver {
    Registered,
    /// The key stays, and its developer has everything else.
    Rotated,
}

/// The call that a program makes with the key and the secret alone.
enum FirstCall {
    /// The API admits calls without a user at this URL.
    Api(String),
    /// A user has to allow access: the URLs of the request token call, and of the authorization page up to its token.
    Flow { url: String, open: String },
}

#[derive(Template)]
#[template(path = "console/handover.html")]
struct HandoverPage<'a> {
    frame: ConsoleFrame<'a>,
    /// What is shown this once.
    shown: &'static str,
    whom: &'static str,
    facts: Vec<(&'static str, String)>,
    snippets: Vec<(&'static str, &'static str, String)>,
    /// The first call of the programs, if there are any.
    call: Option<FirstCall>,
    back: String,
}

impl ConsoleRequest<'_> {
    pub(crate) fn hand_over(
        &self,
        why: HandedOver,
        title: String,
        consumer: &Consumer,
    ) -> OwnResponse {
        let (key, secret) = (consumer.key.as_str(), consumer.secret.expose_text());
        let (backend, signature) = (self.backend, &self.backend.rules.verify.signature);
        let url = |call| format!("{}{}", backend.base_url, backend.rules.flow.best_of(call));
        let methods = signature.methods.iter().map(|method| method.to_string());
        let dialect = consumer.dialect.unwrap_or(signature.default_dialect);
        let mut facts = vec![
            ("Consumer key", key.to_owned()),
            ("Consumer secret", secret.to_string()),
            (
                "Request token URL",
                url(ServiceCall::Token(TokenCall::RequestToken)),
            ),
            ("Authorization URL", url(ServiceCall::Page(Page::Authorize))),
            (
                "Access token URL",
                url(ServiceCall::Token(TokenCall::AccessToken)),
            ),
            ("API", backend.api_urls.join(" ")),
            ("Signature methods", Vec::from_iter(methods).join(" ")),
            (
                "Base string",
                match dialect {
                    Dialect::Rfc5849 => "RFC 5849".to_owned(),
                    Dialect::Legacy => "legacy: the query is not signed".to_owned(),
                },
            ),
        ];
        let call = self.first_call(consumer);
        let callback = match &consumer.callbacks[..] {
            [first, ..] if consumer.callbacks.iter().all(|it| it != OOB) => first,
            _ => OOB,
        };
        let fill = |text: &str| {
            let (address, kept, dropped) = match &call {
                FirstCall::Api(url) => ((&**url, ""), "  @api", "  @flow"),
                FirstCall::Flow { url, open } => ((&**url, &**open), "  @flow", "  @api"),
            };
            let lines = text.lines().filter(|line| !line.ends_with(dropped));
            let lines = lines.map(|line| line.strip_suffix(kept).unwrap_or(line).to_owned() + "\n");
            let values = [
                ("@KEY@", key),
                ("@SECRET@", &*secret),
                ("@URL@", address.0),
                ("@OPEN@", address.1),
                ("@CALLBACK@", callback),
            ];
            let filled = |text: String, (name, value): (&str, &str)| text.replace(name, value);
            values.into_iter().fold(lines.collect(), filled)
        };
        // The programs sign so.
        let is_accepted = signature.methods.contains(SignatureMethod::HmacSha1);
        let programs = SNIPPETS.iter().filter(|_| is_accepted);
        let mut snippets =
            Vec::from_iter(programs.map(|(title, id, text)| (*title, *id, fill(text))));
        if why == HandedOver::Rotated {
            facts.truncate(2);
            snippets.clear();
        }
        let back = path("/consumer", &[("key", key)]);
        let page = HandoverPage {
            snippets,
            call: Some(call),
            ..self.once(title, ["secret", "For its developer"], facts, back)
        };
        show(200, &page)
    }

    /// The first call that can succeed without a token: of the first operation that admits `application`, else for a
    /// request token.
    fn first_call(&self, consumer: &Consumer) -> FirstCall {
        let live = self.admin.shared.live.load();
        let operations = &live.authorizer.operations;
        let is_open = |operation: &&Operation| {
            let is_get = operation.has_method(b"GET");
            let needed = operation.rules.permission.as_ref();
            let is_permitted = needed.is_none_or(|it| consumer.permissions.contains(it));
            // A launch is a form that a browser sends.
            let is_plain = is_get && !operation.rules.launch;
            operation.access.admits(CallerKind::Application) && is_permitted && is_plain
        };
        let backend = self.backend;
        let api = backend.api_urls.first().map_or("", String::as_str);
        let api = api.trim_end_matches('/');
        let open = operations.listed().iter().find(is_open);
        let path = match open {
            Some(operation) => Some(operation.rules.path.example()),
            None if operations.unlisted().admits(CallerKind::Application) => Some("/".to_owned()),
            None => None,
        };
        if let Some(path) = path {
            return FirstCall::Api(format!("{api}{path}"));
        }
        let url = |call| format!("{}{}", backend.base_url, backend.rules.flow.best_of(call));
        let page = backend.rules.flow.authorization_page();
        FirstCall::Flow {
            url: url(ServiceCall::Token(TokenCall::RequestToken)),
            open: format!("{}{page}", backend.base_url),
        }
    }

    pub(crate) fn hand_over_link(
        &self,
        consumer: &Consumer,
        url: String,
        until: UnixTime,
    ) -> OwnResponse {
        let title = format!("Link for the developer of {}", consumer.name);
        let facts = vec![
            ("Why calls are rejected", url),
            ("Valid until", time(until)),
        ];
        let back = path("/consumer", &[("key", consumer.key.as_str())]);
        let page = self.once(title, ["link", "For its developer"], facts, back);
        show(200, &page)
    }

    pub(crate) fn hand_over_password(&self, user: &User, password: &Secret) -> OwnResponse {
        let title = format!("New password of {}", user.name);
        let password = password.expose_text().to_string();
        let facts = vec![("Login name", user.name.clone()), ("Password", password)];
        let back = path("/user", &[("id", user.id.as_str())]);
        let page = self.once(title, ["password", "For the user"], facts, back);
        show(200, &page)
    }

    /// The page that shows these facts, of which one is `shown` only once.
    fn once(
        &self,
        title: String,
        [shown, whom]: [&'static str; 2],
        facts: Vec<(&'static str, String)>,
        back: String,
    ) -> HandoverPage<'_> {
        HandoverPage {
            frame: self.shell.frame(title),
            shown,
            whom,
            facts,
            snippets: Vec::new(),
            call: None,
            back,
        }
    }
}
