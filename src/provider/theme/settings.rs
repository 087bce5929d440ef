//! The settings of pages and of responses.

use std::path::PathBuf;

use serde_json::json;
use unic_langid::LanguageIdentifier;

use crate::{
    base::settings::{deserialize_text, section, texts},
    provider::theme::colour::{Colour, Palette},
    wire::url::web_page::WebUrl,
};

section! {
    /// User pages: login, consent, connected applications, errors.
    #[derive(Default)]
    PagesSettings["pages"] {
        /// The name of the service.
        name: Option<String> [else "service.realm": "Example Photos"], reload;
        /// An image above every page: SVG, PNG, JPEG or WebP, 256 KiB at most. It is 48 pixels high.
        logo: Option<PathBuf> [else "none: the first letter of the name, on the consent page": "logo.svg"], reload;
        /// The same for browsers that prefer dark pages.
        logo_dark: Option<PathBuf> [else "logo": "logo-dark.svg"], reload;
        /// The colour of buttons and links. Pages show another shade of it if its contrast would be too low.
        accent: Option<Colour> [else "blue": "#1740b4"], reload;
        /// The same for browsers that prefer dark pages.
        accent_dark: Option<Colour> [else "a lighter shade of accent": "#9ab8ff"], reload;
        /// The colour around the content.
        background: Option<Colour> [else "light grey": "#f3f4f7"], reload;
        /// The same for browsers that prefer dark pages.
        background_dark: Option<Colour> [else "nearly black": "#12151b"], reload;
        /// A style sheet that comes after the built-in one, 256 KiB at most. It can load no font and no image.
        stylesheet: Option<PathBuf> [else "none": "pages.css"], reload;
        /// The terms of use; every page links to them.
        terms_url: Option<WebUrl> [else "none": "https://example.com/terms"], reload;
        /// The page on users' data; every page links there.
        privacy_url: Option<WebUrl> [else "none": "https://example.com/privacy"], reload;
        /// A page with help; every page links there.
        help_url: Option<WebUrl> [else "none": "https://example.com/help"], reload;
        /// The page on which users replace a forgotten password; the login page links there.
        recovery_url: Option<WebUrl> [else "none": "https://example.com/forgot"], reload;
        /// The language of the texts of `[[permission]]` below. Screen readers use it on pages in another language.
        permission_language: Option<Language> [else "not known": "en"], reload;
        /// A directory of Fluent files named after languages, such as fr.ftl: each replaces messages of its language, or adds
        /// the language. See docs/pages.md.
        messages: Option<PathBuf> [else "the built-in languages": "messages"], reload;
    }
}

section! {
    /// The parts of responses to rejections.
    #[derive(Default)]
    ResponseSettings["service"] {
        /// The realm in WWW-Authenticate.
        realm: String = "countersign", reload;
        /// The page on errors for consumers' developers: docs/errors.md as a web page, or one of your own with its headings.
        /// Rejections link there: docs/pages.md.
        docs_url: Option<WebUrl> [else "none": "https://example.com/docs/errors"], reload;
    }
}

impl PagesSettings {
    /// The colours.
    pub const fn palette(&self) -> Palette {
        Palette {
            accent: self.accent,
            accent_dark: self.accent_dark,
            background: self.background,
            background_dark: self.background_dark,
        }
    }
}

/// A language, as `lang` in HTML names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Language(pub String);

texts! {
    Colour: "a colour such as \"#1f4fd8\"" => |text| Self::parse(text).ok_or(""),
        json!({ "type": "string", "pattern": "^#[0-9A-Fa-f]{6}$" });
    Language: "a language such as \"en\" or \"pt-BR\"" => |text: &str|
        text.parse::<LanguageIdentifier>().map(|id| Self(id.to_string())).map_err(|_| "");
}
deserialize_text!(Colour, Language);
