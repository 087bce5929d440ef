//! The frame around the content of a page: its language, and the links to it in other languages.

use std::borrow::Cow;

use http::{HeaderValue, Uri};

use crate::{
    base::{language::Texts, network::http_fields::parameter, text::percent_encoded},
    provider::theme::Theme,
};

/// The parameter of a query that names the languages of a page.
pub const UI_LOCALES: &str = "ui_locales";

/// The parameters that links to a page in other languages repeat.
const REPEATED: [&str; 7] = [
    "mode",
    "link",
    "oauth_token",
    "return_to",
    "sessions",
    "which",
    "withdraw",
];

/// The longest query, of these parameters only, that such links repeat; a page with a longer one has no such links.
const MAX_REPEATED: usize = 200;

/// The longest target that an error page links to, to load it again.
const MAX_RELOAD: usize = 1000;

/// The frame around the content of a page for one browser.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The parts in common with every other page.
    pub theme: &'a Theme,
    /// The messages in its language.
    pub texts: Texts<'a>,
    /// The language was chosen by `ui_locales`: links keep it.
    is_asked: bool,
    here: Option<&'a Uri>,
    /// The sites that may show the page in a frame of theirs, as sources of CSP; `None`: no site may.
    pub(in crate::provider) ancestors: Option<&'a str>,
}

impl<'a> Frame<'a> {
    /// The frame of a page in English.
    pub fn in_english(theme: &'a Theme) -> Self {
        Self::new(theme, None, None)
    }

    /// The frame of a page in the language that a request asks for: by `ui_locales` in its query (as in OpenID Connect, best
    /// first), else by Accept-Language. `here` is the target of the request, if a GET shows the page.
    pub fn new(
        theme: &'a Theme,
        here: Option<&'a Uri>,
        accept_language: Option<&HeaderValue>,
    ) -> Self {
        let query = here.and_then(Uri::query);
        let tags = query.and_then(|query| parameter(query.as_bytes(), UI_LOCALES).ok()?);
        let asked = tags.and_then(|tags| theme.languages.by_ui_locales(&tags));
        let accepted = || accept_language.map(HeaderValue::as_bytes);
        Self {
            theme,
            texts: asked.unwrap_or_else(|| theme.languages.accepted(accepted())),
            is_asked: asked.is_some(),
            here,
            ancestors: None,
        }
    }

    /// The frame of the same page in the first of these languages that there is: tags separated by spaces.
    pub fn preferring(self, tags: &str) -> Self {
        let preferred = self.theme.languages.by_ui_locales(tags);
        let texts = preferred.unwrap_or(self.texts);
        Self { texts, ..self }
    }

    /// The frame of the same page where these sources of CSP may frame it.
    pub fn framed_by(self, ancestors: Option<&'a str>) -> Self {
        Self { ancestors, ..self }
    }
}

/// The name of a language in itself.
pub(in crate::provider) fn language_name(texts: Texts<'_>) -> Cow<'_, str> {
    let name = texts.in_this_language("language-name", None);
    name.unwrap_or(texts.tag().into())
}

impl Frame<'_> {
    /// The languages: the tag and the name of each, and the link to this page in it, unless it is in this language. Nothing
    /// for a page that is not one of ours, or whose query is too long.
    pub fn languages(&self) -> Vec<(&str, Cow<'_, str>, Option<String>)> {
        let rules = &self.theme.rules;
        let mut paths = rules.page_paths.iter().chain([&rules.path]);
        let is_ours = |uri: &&Uri| paths.any(|path| path == uri.path());
        let Some(query) = self
            .here
            .filter(is_ours)
            .map(|uri| uri.query().unwrap_or_default())
        else {
            return Vec::new();
        };
        // A notice, or the position in a list, belongs to this page alone.
        let is_repeated = |pair: &&str| {
            let name = pair.split('=').next().unwrap_or_default();
            REPEATED.contains(&name) || rules.page_parameters.iter().any(|other| other == name)
        };
        let repeated = Vec::from_iter(query.split('&').filter(is_repeated)).join("&");
        if repeated.len() > MAX_REPEATED {
            return Vec::new();
        }
        let all = self.theme.languages.all().map(|texts| {
            let tag = texts.tag();
            let link = (tag != self.texts.tag()).then(|| format!("?{repeated}&{UI_LOCALES}={tag}"));
            (tag, language_name(texts), link)
        });
        all.collect()
    }

    /// The name of its language in itself.
    pub fn language_name(&self) -> Cow<'_, str> {
        language_name(self.texts)
    }

    /// The path and query of this page, if a GET shows it and they are not too long.
    pub fn reload_link(&self) -> Option<&str> {
        let target = self.here?.path_and_query()?.as_str();
        // A browser reads two slashes as the beginning of another host.
        let is_path = target.starts_with('/') && !target[1..].starts_with(['/', '\\']);
        (is_path && target.len() <= MAX_RELOAD).then_some(target)
    }

    /// The URL of the user's applications, also from another host; `None` where there are no such pages.
    pub fn applications(&self) -> Option<String> {
        let rules = &self.theme.rules;
        let link = || format!("{}{}", rules.origin, self.link("applications"));
        (!rules.path.is_empty()).then(link)
    }

    /// The path and query of the page that `mode` names, in the same language.
    pub fn link(&self, mode: &str) -> String {
        self.in_same_language(format!("{}?mode={mode}", self.theme.rules.path))
    }

    /// The same with a parameter.
    pub fn link_with(&self, mode: &str, parameter: &str, value: &str) -> String {
        format!("{}&{parameter}={}", self.link(mode), percent_encoded(value))
    }

    /// A path of ours, its query begun, in the same language.
    pub fn in_same_language(&self, mut path: String) -> String {
        if self.is_asked {
            path.extend(["&", UI_LOCALES, "=", self.texts.tag()]);
        }
        path
    }
}
