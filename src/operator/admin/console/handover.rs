//! The one page that shows a secret, with all that the consumer's developer needs.

use askama::Template;

use super::{
    ConsoleRequest,
    page::{ConsoleFrame, show},
    parts::{path, time},
};
use crate::{
    base::clock::UnixTime,
    provider::respond::OwnResponse,
    records::store::record::{Consumer, Dialect},
    request::route::{Page, ServiceCall, TokenCall},
};

/// Programs that make a signed call: title, id and text. The values to fill in are `@KEY@`, `@SECRET@` and `@URL@`; keys and
/// random secrets have no character that a string literal would have to escape.
const SNIPPETS: [(&str, &str, &str); 5] = [
    (
        "Python: requests-oauthlib",
        "python",
        include_str!("../../../../templates/console/snippets/requests.py"),
    ),
    (
        "Node: oauth-1.0a",
        "node",
        include_str!("../../../../templates/console/snippets/oauth.js"),
    ),
    (
        "PHP",
        "php",
        include_str!("../../../../templates/console/snippets/call.php"),
    ),
    (
        "Java",
        "java",
        include_str!("../../../../templates/console/snippets/Call.java"),
    ),
    (
        "curl, with countersign sign",
        "curl",
        include_str!("../../../../templates/console/snippets/curl.sh"),
    ),
];

/// The reason why there is a new secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandedOver {
    Registered,
    /// The key stays, and its developer has everything else.
    Rotated,
}

#[derive(Template)]
#[template(path = "console/handover.html")]
struct HandoverPage<'a> {
    frame: ConsoleFrame<'a>,
    /// What is shown this once.
    shown: &'static str,
    facts: Vec<(&'static str, String)>,
    snippets: Vec<(&'static str, &'static str, String)>,
    back: String,
}

impl ConsoleRequest<'_> {
    pub(super) fn hand_over(
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
        let api = backend.api_urls.first().map_or("", String::as_str);
        let api = format!("{}/", api.trim_end_matches('/'));
        let fill = |text: &str| {
            let text = text.replace("@KEY@", key).replace("@SECRET@", &secret);
            text.replace("@URL@", &api)
        };
        let mut snippets =
            Vec::from_iter(SNIPPETS.map(|(title, id, text)| (title, id, fill(text))));
        if why == HandedOver::Rotated {
            facts.truncate(2);
            snippets.clear();
        }
        let page = HandoverPage {
            frame: self.shell.frame(title),
            shown: "secret",
            facts,
            snippets,
            back: path("/consumer", &[("key", key)]),
        };
        show(200, &page)
    }
    pub(super) fn hand_over_link(
        &self,
        consumer: &Consumer,
        url: String,
        until: UnixTime,
    ) -> OwnResponse {
        let title = format!("Link for the developer of {}", consumer.name);
        let page = HandoverPage {
            frame: self.shell.frame(title),
            shown: "link",
            facts: vec![
                ("Why calls are rejected", url),
                ("Valid until", time(until)),
            ],
            snippets: Vec::new(),
            back: path("/consumer", &[("key", consumer.key.as_str())]),
        };
        show(200, &page)
    }
}
