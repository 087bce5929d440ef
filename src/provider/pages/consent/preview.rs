//! The consent page as an operator looks at it: that of a consumer, in any language, and light or dark. Its buttons do nothing.

use crate::{
    base::{clock::UnixTime, text::names::UserId},
    provider::{
        issue::callback::OOB,
        pages::{
            Pages, Wording,
            consent::{Asking, ConsentPage},
        },
        respond::OwnResponse,
        theme::{
            Theme,
            frame::{Frame, language_name},
        },
    },
    records::values::record::{Callback, Consumer, User},
};

/// The name of the user on the page, which is visibly an example.
const USER: &str = "example user";

impl Pages {
    /// The tags and the names of the languages of the pages.
    pub fn languages(&self) -> Vec<(String, String)> {
        let all = self.rules.theme.languages.all();
        let named = all.map(|texts| (texts.tag().to_owned(), language_name(texts).into_owned()));
        named.collect()
    }

    /// The page on which a user decides about this consumer for the first time, in the first of these languages that there
    /// is. Only a page of the same origin may frame it, and it has no form. `None`: the consumer has no callback by which
    /// it could ask.
    pub fn consent_preview(
        &self,
        consumer: &Consumer,
        language: &str,
        is_dark: bool,
    ) -> Option<OwnResponse> {
        let rules = &self.rules;
        let frame = Frame::in_english(&rules.theme).preferring(language);
        let frame = frame.framed_by(Some("'self'"));
        let id: UserId = "example".parse().ok()?;
        let user = User::new(id, USER.to_owned(), UnixTime(0));
        let callback = match consumer.callbacks.first()?.as_str() {
            OOB => Callback::Oob,
            uri => Callback::Uri(uri.to_owned()),
        };
        let asking = Asking {
            consumer,
            user: &user,
            permissions: &consumer.permissions,
            callback: &callback,
            earlier: &[],
        };
        let words = Wording { rules, frame };
        let (page, _): (ConsentPage<'_>, _) = asking.page(words, None).ok()?;
        let page = OwnResponse::page(frame, 200, &page, "");
        Some(in_one_scheme(page, &rules.theme, is_dark))
    }
}

/// A page that is light or dark, whatever its browser prefers.
fn in_one_scheme(mut page: OwnResponse, theme: &Theme, is_dark: bool) -> OwnResponse {
    let (scheme, on, off) = match is_dark {
        true => ("dark", "all", "not all"),
        false => ("light", "not all", "all"),
    };
    let chosen = |text: &str| {
        let mut text = text.replace("color-scheme:light dark", &format!("color-scheme:{scheme}"));
        for space in ["", " "] {
            for (name, media) in [("dark", on), ("light", off)] {
                text = text.replace(&format!("(prefers-color-scheme:{space}{name})"), media);
            }
        }
        text
    };
    let html = chosen(&String::from_utf8_lossy(&page.body));
    page.body = html.into();
    let [before, after] = [&theme.style, &chosen(&theme.style)].map(|it| Theme::style_source(it));
    for (name, value) in &mut page.fields {
        if *name == "Content-Security-Policy" {
            *value = value
                .replace(&before, &after)
                .replace("form-action 'self'", "form-action 'none'")
                + "; sandbox";
        }
    }
    page
}
