//! The settings of pages and of responses.

use std::{fmt, path::PathBuf};

use serde_json::json;
use unic_langid::LanguageIdentifier;

use crate::{
    base::settings::{deserialize_text, section, texts},
    wire::url::web_page::WebUrl,
};

section! {
    /// User pages: login, consent, connected applications, errors.
    #[derive(Default)]
    PagesSettings["pages"] {
        /// The name of the service.
        name: Option<String> [else "service.realm": "Example Photos"], reload;
        /// An image above every page, 48 pixels high: SVG, PNG, JPEG or WebP, 256 KiB at most.
        logo: Option<PathBuf> [else "none: the first letter of the name, on the consent page": "logo.svg"], reload;
        /// The same for browsers that prefer dark pages.
        logo_dark: Option<PathBuf> [else "logo": "logo-dark.svg"], reload;
        /// The colour of buttons and links; of another shade if the contrast would be too low.
        accent: Option<Colour> [else "blue": "#1740b4"], reload;
        /// The same for browsers that prefer dark pages.
        accent_dark: Option<Colour> [else "a lighter shade of accent": "#9ab8ff"], reload;
        /// The colour around the content.
        background: Option<Colour> [else "light grey": "#f3f4f7"], reload;
        /// The same for browsers that prefer dark pages.
        background_dark: Option<Colour> [else "nearly black": "#12151b"], reload;
        /// A style sheet after the built-in one, 256 KiB at most. It can load no font and no image.
        stylesheet: Option<PathBuf> [else "none": "pages.css"], reload;
        /// The terms of use, to which every page links.
        terms_url: Option<WebUrl> [else "none": "https://example.com/terms"], reload;
        /// The page on users' data, to which every page links.
        privacy_url: Option<WebUrl> [else "none": "https://example.com/privacy"], reload;
        /// Help, to which every page links.
        help_url: Option<WebUrl> [else "none": "https://example.com/help"], reload;
        /// The page for a forgotten password, to which the login page links.
        recovery_url: Option<WebUrl> [else "none": "https://example.com/forgot"], reload;
        /// The language of the texts of `[[permission]]`, for screen readers.
        permission_language: Option<Language> [else "not known": "en"], reload;
        /// A directory of Fluent files such as fr.ftl, which replace messages of their language, or add it. See docs/pages.md.
        messages: Option<PathBuf> [else "the built-in languages": "messages"], reload;
    }
}

section! {
    /// The parts of responses to rejections.
    #[derive(Default)]
    ResponseSettings["service"] {
        /// The realm in WWW-Authenticate.
        realm: String = "countersign", reload;
        /// The page on errors to which rejections link, with the headings of docs/errors.md. See docs/pages.md.
        docs_url: Option<WebUrl> [else "none": "https://example.com/docs/errors"], reload;
    }
}

/// A colour of sRGB: red, green, blue. Prints as `#1f4fd8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub [u8; 3]);

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl Colour {
    /// Reads `#1f4fd8`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#')?;
        let is_six = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_six)?;
        let [_, red, green, blue] = number.to_be_bytes();
        Some(Self([red, green, blue]))
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
