//! The consent page of a consumer, as a user will see it.

use askama::Template;

use crate::{
    operator::admin::console::{
        ConsoleRequest, Rejected, Result,
        page::{ConsoleFrame, InputField, InputKind, show},
        parts::path,
    },
    provider::respond::OwnResponse,
};

#[derive(Template)]
#[template(path = "console/consent.html")]
struct PreviewPage<'a> {
    frame: ConsoleFrame<'a>,
    key: &'a str,
    /// The choice of the language.
    language: InputField,
    /// The titles of both pages, and their addresses; none if the consumer cannot ask.
    pages: Vec<(&'static str, String)>,
    back: String,
}

impl ConsoleRequest<'_> {
    /// The page that shows it light and dark, in a chosen language.
    pub(crate) async fn consent(&self) -> Result<OwnResponse> {
        let consumer = self.named_consumer().await?;
        let (key, language) = (consumer.key.as_str(), self.field("language"));
        let live = self.admin.shared.live.load();
        let languages = live.authorizer.pages.languages();
        let can_ask = !consumer.callbacks.is_empty();
        let schemes = [("Light", "light"), ("Dark", "dark")];
        let pages = schemes.map(|(title, scheme)| {
            let parameters = [("key", key), ("language", language), ("scheme", scheme)];
            (title, path("/consumer/consent-page", &parameters))
        });
        let page = PreviewPage {
            frame: self
                .shell
                .frame(format!("Consent page of {}", consumer.name)),
            key,
            language: InputField::new(
                InputKind::Choice(languages),
                "language",
                "Language",
                language,
            ),
            pages: pages.into_iter().filter(|_| can_ask).collect(),
            back: path("/consumer", &[("key", key)]),
        };
        let mut page = show(200, &page);
        for (name, value) in &mut page.fields {
            if *name == "Content-Security-Policy" {
                value.push_str("; frame-src 'self'");
            }
        }
        Ok(page)
    }

    /// The page itself, for a frame of the other one.
    pub(crate) async fn consent_page(&self) -> Result<OwnResponse> {
        let consumer = self.named_consumer().await?;
        let live = self.admin.shared.live.load();
        let (language, is_dark) = (self.field("language"), self.field("scheme") == "dark");
        let pages = &live.authorizer.pages;
        let page = pages.consent_preview(&consumer, language, is_dark);
        page.ok_or(Rejected::NotFound)
    }
}
