//! The theme of all pages: the operator's name, logo, colours, style sheet and links.

pub mod asset;
pub mod colour;
pub mod frame;
pub mod settings;

use std::{path::PathBuf, sync::LazyLock};

use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{
    base::{
        language::{Languages, PageFileError},
        text::names::Permission,
    },
    provider::theme::{
        asset::{Asset, FileType, css_type, image_type},
        settings::{PagesSettings, ResponseSettings},
    },
};

/// The style sheet inside every page.
const STYLE: &str = include_str!("../../../templates/style.css");

/// The additional styles of pages for operators and developers.
const TABLES: &str = include_str!("../../../templates/tables.css");

/// The rules of the theme.
#[derive(Debug, Clone, Default)]
pub struct ThemeRules {
    /// The settings of the pages.
    pub pages: PagesSettings,
    /// Those of responses to rejections.
    pub responses: ResponseSettings,
    /// The origin of `service.base_url`, from which logo and style sheet come.
    pub origin: String,
    /// `service.path`: logo and style sheet are below it.
    pub path: String,
    /// The paths of the authorization page, in addition to `path`.
    pub page_paths: Vec<String>,
    /// Further parameters of the authorization page, which links to it in other languages keep.
    pub page_parameters: Vec<String>,
    /// The permissions, for which `pages.messages` may have texts.
    pub permissions: Vec<Permission>,
}

/// The parts that all pages have in common. A reload makes a new one.
pub struct Theme {
    /// Its rules.
    pub rules: ThemeRules,
    /// The languages that pages can be shown in.
    pub languages: Languages,
    /// The style sheet in every page.
    pub style: String,
    /// The operator's logo.
    pub logo: Option<Asset>,
    /// The same for browsers that prefer dark pages.
    pub logo_dark: Option<Asset>,
    /// The sign of the service, where it has no logo.
    sign: Option<Asset>,
    /// The operator's style sheet.
    pub stylesheet: Option<Asset>,
    /// The Content-Security-Policy up to the targets of forms.
    policy: String,
}

impl Theme {
    /// Reads the files of a theme.
    ///
    /// # Errors
    /// [`PageFileError`]
    pub fn read(rules: ThemeRules) -> Result<Self, PageFileError> {
        let mut theme = Self::new(rules);
        if let Some(directory) = &theme.rules.pages.messages {
            theme.languages.read(directory, &theme.rules.permissions)?;
        }
        let rules = &theme.rules;
        let read = |key, file: &Option<PathBuf>, file_type: FileType| {
            let read = |file: &PathBuf| Asset::read(rules.service(), key, file, file_type);
            file.as_ref().map(read).transpose()
        };
        let logo = read("pages.logo", &rules.pages.logo, image_type)?;
        let logo_dark = read("pages.logo_dark", &rules.pages.logo_dark, image_type)?;
        let stylesheet = read("pages.stylesheet", &rules.pages.stylesheet, css_type)?;
        let sign = logo.is_none().then(|| rules.sign());
        (theme.logo, theme.logo_dark) = (logo, logo_dark);
        (theme.stylesheet, theme.sign) = (stylesheet, sign);
        theme.policy = theme.policy();
        Ok(theme)
    }

    /// A theme without files.
    fn new(rules: ThemeRules) -> Self {
        let mut theme = Self {
            style: compact(STYLE) + &rules.pages.colour_rules(),
            rules,
            languages: Languages::built_in(),
            logo: None,
            logo_dark: None,
            sign: None,
            stylesheet: None,
            policy: String::new(),
        };
        theme.policy = theme.policy();
        theme
    }

    fn policy(&self) -> String {
        let own = Self::style_source(&self.style);
        let source = |asset: &Asset| format!(" {}", asset.url);
        let style = self.stylesheet.as_ref().map(source).unwrap_or_default();
        let images = String::from_iter(self.images().map(source));
        let images = match images.as_str() {
            "" => images,
            sources => format!("; img-src{sources}"),
        };
        format!("default-src 'none'; style-src {own}{style}{images}; form-action 'self'")
    }

    /// A style sheet inside a page, as a source of CSP.
    pub fn style_source(style: &str) -> String {
        let hash = digest::digest(&digest::SHA256, style.as_bytes());
        format!("'sha256-{}'", STANDARD.encode(hash))
    }

    fn images(&self) -> impl Iterator<Item = &Asset> {
        self.logo.iter().chain(&self.logo_dark).chain(&self.sign)
    }

    /// The picture of the service that browsers show beside the title.
    pub fn icon(&self) -> Option<&Asset> {
        self.images().next()
    }

    /// The colours around the content, for browsers that prefer light pages and for those that prefer dark ones.
    pub fn theme_colours(&self) -> [(&'static str, String); 2] {
        self.rules.pages.page_colours()
    }

    /// The links below every page, each with its message.
    pub fn links(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let pages = &self.rules.pages;
        let links = [
            ("footer-terms", &pages.terms_url),
            ("footer-privacy", &pages.privacy_url),
            ("footer-help", &pages.help_url),
        ];
        let links = links.into_iter();
        links.filter_map(|(message, link)| Some((message, &link.as_ref()?.0)))
    }

    /// The theme of pages of a service that is not configured, such as those of the admin listener.
    pub fn plain() -> &'static Self {
        static PLAIN: LazyLock<Theme> = LazyLock::new(|| Theme::plain_with(TABLES));
        &PLAIN
    }

    /// A plain theme with more rules in its style sheet.
    pub fn plain_with(style: &str) -> Self {
        let mut theme = Self::new(ThemeRules {
            pages: PagesSettings {
                name: Some("countersign".to_owned()),
                ..PagesSettings::default()
            },
            ..ThemeRules::default()
        });
        theme.style.push_str(style);
        theme.policy = theme.policy();
        theme
    }

    /// The files that pages refer to.
    pub fn assets(&self) -> impl Iterator<Item = &Asset> {
        self.images().chain(&self.stylesheet)
    }

    /// The fields of every page. Its forms come back to this origin and then lead on to `further`, a list of CSP sources. Pages
    /// of the sources `ancestors` may show it in a frame; without them, no page may.
    pub fn fields(&self, further: &str, ancestors: Option<&str>) -> Vec<(&'static str, String)> {
        let policy = format!(
            "{}{further}; frame-ancestors {}; base-uri 'none'",
            self.policy,
            ancestors.unwrap_or("'none'")
        );
        let fields = [
            ("Content-Security-Policy", policy.as_str()),
            ("X-Frame-Options", "DENY"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
        ];
        let fields = fields.into_iter();
        // It knows no list of sites.
        let fields = fields.filter(|(name, _)| ancestors.is_none() || *name != "X-Frame-Options");
        fields
            .map(|(name, value)| (name, value.to_owned()))
            .collect()
    }
}

/// A style sheet without comments, the white space of its layout, and zeros before a point.
fn compact(style: &str) -> String {
    let lines = style.lines().map(str::trim_start);
    let lines = lines.filter(|line| !line.starts_with("/*"));
    let mut text = lines.collect::<String>();
    for (long, short) in [
        (": ", ":"),
        (" {", "{"),
        (", ", ","),
        (";}", "}"),
        (" > ", ">"),
        ("; ", ";"),
        ("{ ", "{"),
        (" }", "}"),
        (" 0.", " ."),
        (":0.", ":."),
    ] {
        text = text.replace(long, short);
    }
    text
}

/// The first letter of a name, for the sign of a consumer or of the service.
pub fn monogram(name: &str) -> String {
    let first = name.chars().find(|letter| letter.is_alphanumeric());
    first.map_or_else(|| "?".to_owned(), |letter| letter.to_uppercase().collect())
}

impl ThemeRules {
    /// `pages.name`, else the realm: the name of the service on its pages.
    pub fn name(&self) -> &str {
        let name = self.pages.name.as_ref();
        name.unwrap_or(&self.responses.realm)
    }

    /// The origin and the path of the service, for its files.
    fn service(&self) -> (&str, &str) {
        (&self.origin, &self.path)
    }

    /// The first letter of the service's name in its colour. A letter needs no escape.
    fn sign(&self) -> Asset {
        let letter = monogram(self.name());
        let colour = self.pages.sign_colour();
        let svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48'><rect width='48' height='48' rx='12' \
             fill='{colour}'/><text x='24' y='34' text-anchor='middle' font-family='sans-serif' font-size='28' \
             font-weight='700' fill='#fff'>{letter}</text></svg>"
        );
        Asset::new(self.service(), svg.into(), ("svg", "image/svg+xml"))
    }
}
