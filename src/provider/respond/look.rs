//! The parts that all pages have in common: the operator's name, logo, colours and links, and the languages.

use std::{borrow::Cow, fs, path::Path, path::PathBuf, sync::LazyLock};

use aws_lc_rs::digest;
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use http::{HeaderValue, Uri};

use super::{OwnResponse, colour::Palette};
use crate::{
    base::{
        fields::parameter,
        language::{Languages, PageFileError, Texts},
        names::Permission,
    },
    telemetry::metrics::Verdict,
};

/// The style sheet inside every page.
const STYLE: &str = include_str!("../../../templates/style.css");

/// The additional styles of pages for operators and developers.
const TABLES: &str = include_str!("../../../templates/tables.css");

/// The most bytes of a file that pages refer to: it is held in memory.
const MAX_BYTES: usize = 256 * 1024;

/// The parameter of a query that names the languages of a page.
pub const UI_LOCALES: &str = "ui_locales";

/// The parameters that links to a page in other languages keep.
const KEPT: [&str; 6] = [
    "mode",
    "oauth_token",
    "return_to",
    "sessions",
    "which",
    "withdraw",
];

/// The longest query, of kept parameters only, that links to languages repeat; a page with a longer one has no such links.
const MAX_KEPT: usize = 200;

/// The longest target that an error page repeats in a link.
const MAX_AGAIN: usize = 1000;

/// The most characters of a value in `WWW-Authenticate`: proxies take heads of 4 KiB.
const MAX_PARAMETER_CHARS: usize = 1024;

/// The configuration of the look.
#[derive(Debug, Clone, Default)]
pub struct Params {
    /// `service.realm`: the realm of a 401.
    pub realm: String,
    /// The origin of `service.base_url`, from which logo and style sheet come.
    pub origin: String,
    /// `service.path`: logo and style sheet are below it.
    pub path: String,
    /// The paths of the authorization page, in addition to `path`.
    pub page_paths: Vec<String>,
    /// Further parameters of the authorization page, which links to it in other languages keep.
    pub page_parameters: Vec<String>,
    /// `pages.name`, else the realm: the name of the service on its pages.
    pub name: String,
    /// `pages.messages`
    pub messages: Option<PathBuf>,
    /// The permissions, for which `messages` may have texts.
    pub permissions: Vec<Permission>,
    /// `pages.logo`
    pub logo: Option<PathBuf>,
    /// `pages.logo_dark`
    pub logo_dark: Option<PathBuf>,
    /// `pages.stylesheet`
    pub stylesheet: Option<PathBuf>,
    /// `pages.accent` and the other colours.
    pub palette: Palette,
    /// `pages.terms_url`
    pub terms_url: Option<String>,
    /// `pages.privacy_url`
    pub privacy_url: Option<String>,
    /// `pages.help_url`
    pub help_url: Option<String>,
    /// `service.docs_url`: the page about errors, with a heading for each code, each verdict of an error and each known mistake.
    pub docs_url: Option<String>,
    /// `pages.recovery_url`
    pub recovery_url: Option<String>,
}

/// A file that pages refer to, at a path that changes with its content.
pub struct Asset {
    /// The path under which it is served.
    pub path: String,
    /// The whole URL: an error page may be on another host.
    pub url: String,
    content_type: &'static str,
    /// Responses share it.
    body: Bytes,
}

impl Asset {
    /// The response with the file. The file is its operator's, but an image can have scripts in it, which must not run.
    pub fn response(&self) -> OwnResponse {
        OwnResponse::new(200, self.content_type, self.body.clone(), Verdict::Page)
            .field(
                "Content-Security-Policy",
                "default-src 'none'; style-src 'unsafe-inline'; sandbox",
            )
            .field("X-Content-Type-Options", "nosniff")
            .field("Cache-Control", "public, max-age=31536000, immutable")
    }
}

/// The parts that all pages have in common. A reload makes a new one.
pub struct Look {
    /// Its configuration.
    pub params: Params,
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

impl Look {
    /// Reads the files of a look.
    ///
    /// # Errors
    /// [`PageFileError`]
    pub fn read(params: Params) -> Result<Self, PageFileError> {
        let mut look = Self::new(params);
        if let Some(directory) = &look.params.messages {
            look.languages.read(directory, &look.params.permissions)?;
        }
        let params = &look.params;
        let read = |key, path: &Option<PathBuf>, file_type| {
            let asset = path.as_ref().map(|path| params.file(key, path, file_type));
            asset.transpose()
        };
        let logo = read("pages.logo", &params.logo, image_type)?;
        let logo_dark = read("pages.logo_dark", &params.logo_dark, image_type)?;
        let stylesheet = read("pages.stylesheet", &params.stylesheet, css_type)?;
        let sign = logo.is_none().then(|| params.sign());
        (look.logo, look.logo_dark) = (logo, logo_dark);
        (look.stylesheet, look.sign) = (stylesheet, sign);
        look.policy = look.policy();
        Ok(look)
    }

    /// A look without files.
    fn new(params: Params) -> Self {
        let mut look = Self {
            style: compact(STYLE) + &params.palette.css(),
            params,
            languages: Languages::built_in(),
            logo: None,
            logo_dark: None,
            sign: None,
            stylesheet: None,
            policy: String::new(),
        };
        look.policy = look.policy();
        look
    }

    fn policy(&self) -> String {
        let hash = STANDARD.encode(digest::digest(&digest::SHA256, self.style.as_bytes()));
        let source = |asset: &Asset| format!(" {}", asset.url);
        let style = self.stylesheet.as_ref().map(source).unwrap_or_default();
        let images = String::from_iter(self.images().map(source));
        let images = match images.as_str() {
            "" => images,
            sources => format!("; img-src{sources}"),
        };
        format!("default-src 'none'; style-src 'sha256-{hash}'{style}{images}; form-action 'self'")
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
        self.params.palette.pages()
    }

    /// The links below every page, each with its message.
    pub fn links(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let params = &self.params;
        let links = [
            ("footer-terms", &params.terms_url),
            ("footer-privacy", &params.privacy_url),
            ("footer-help", &params.help_url),
        ];
        let links = links.into_iter();
        links.filter_map(|(message, link)| Some((message, link.as_ref()?)))
    }

    /// The look of pages of a service that is not configured, such as those of the admin listener.
    pub fn plain() -> &'static Self {
        static PLAIN: LazyLock<Look> = LazyLock::new(|| Look::plain_with(TABLES));
        &PLAIN
    }

    /// A plain look with more rules in its style sheet.
    pub fn plain_with(style: &str) -> Self {
        let mut look = Self::new(Params {
            name: "countersign".to_owned(),
            ..Params::default()
        });
        look.style.push_str(style);
        look.policy = look.policy();
        look
    }

    /// The files that pages refer to.
    pub fn assets(&self) -> impl Iterator<Item = &Asset> {
        self.images().chain(&self.stylesheet)
    }

    /// The fields of every page. Its forms come back to this origin and then lead on to `further`, a list of CSP sources.
    pub fn fields(&self, further: &str) -> Vec<(&'static str, String)> {
        let policy = format!(
            "{}{further}; frame-ancestors 'none'; base-uri 'none'",
            self.policy
        );
        let fields = [
            ("Content-Security-Policy", policy.as_str()),
            ("X-Frame-Options", "DENY"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
        ];
        fields.map(|(name, value)| (name, value.to_owned())).into()
    }

    /// The value of `WWW-Authenticate` with a code of Problem Reporting and advice. Each value is a quoted-string (RFC 9110
    /// §5.6.4), without what cannot be in a field.
    pub fn challenge(&self, code: Option<&str>, advice: Option<&str>) -> String {
        let realm = Some(self.params.realm.as_str());
        let parameters = [
            ("realm", realm),
            ("oauth_problem", code),
            ("oauth_problem_advice", advice),
        ];
        let written = parameters.into_iter().filter_map(|(name, value)| {
            let value = value?.chars().filter(|it| matches!(it, ' '..='~'));
            let value: String = value.take(MAX_PARAMETER_CHARS).collect();
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            Some(format!("{name}=\"{value}\""))
        });
        format!("OAuth {}", written.collect::<Vec<_>>().join(", "))
    }

    /// The frame of a page in English.
    pub fn in_english(&self) -> Frame<'_> {
        self.frame(None, None)
    }

    /// The frame of a page in the language that a request asks for: by `ui_locales` in its query (as in OpenID Connect, best
    /// first), else by Accept-Language. `here` is the target of the request, if a GET shows the page.
    pub fn frame<'a>(
        &'a self,
        here: Option<&'a Uri>,
        accept_language: Option<&HeaderValue>,
    ) -> Frame<'a> {
        let query = here.and_then(Uri::query);
        let tags = query.and_then(|query| parameter(query.as_bytes(), UI_LOCALES).ok()?);
        let asked = tags.and_then(|tags| self.languages.of_ui_locales(&tags));
        let accepted = || accept_language.map(HeaderValue::as_bytes);
        Frame {
            look: self,
            texts: asked.unwrap_or_else(|| self.languages.accepted(accepted())),
            is_asked: asked.is_some(),
            here,
        }
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

/// The frame around the content of a page for one browser.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The parts in common with every other page.
    pub look: &'a Look,
    /// The messages in its language.
    pub texts: Texts<'a>,
    /// The language was chosen by `ui_locales`: links keep it.
    is_asked: bool,
    here: Option<&'a Uri>,
}

impl Frame<'_> {
    /// The languages: the tag and the name of each, and the link to this page in it, unless it is in this language. Nothing
    /// for a page that is not one of ours, or whose query is too long.
    pub fn languages(&self) -> Vec<(&str, Cow<'_, str>, Option<String>)> {
        let params = &self.look.params;
        let mut paths = params.page_paths.iter().chain([&params.path]);
        let is_ours = |uri: &&Uri| paths.any(|path| path == uri.path());
        let Some(query) = self
            .here
            .filter(is_ours)
            .map(|uri| uri.query().unwrap_or_default())
        else {
            return Vec::new();
        };
        // A notice, or the position in a list, belongs to this page alone.
        let is_kept = |pair: &&str| {
            let name = pair.split('=').next().unwrap_or_default();
            KEPT.contains(&name) || params.page_parameters.iter().any(|kept| kept == name)
        };
        let kept = Vec::from_iter(query.split('&').filter(is_kept)).join("&");
        if kept.len() > MAX_KEPT {
            return Vec::new();
        }
        let all = self.look.languages.all().map(|texts| {
            let tag = texts.tag();
            let link = (tag != self.texts.tag()).then(|| format!("?{kept}&{UI_LOCALES}={tag}"));
            (
                tag,
                texts.own("language-name", None).unwrap_or(tag.into()),
                link,
            )
        });
        all.collect()
    }

    /// The path and query of this page, if a GET shows it and they are not too long.
    pub fn again(&self) -> Option<&str> {
        let target = self.here?.path_and_query()?.as_str();
        // A browser reads two slashes as the beginning of another host.
        let is_path = target.starts_with('/') && !target[1..].starts_with(['/', '\\']);
        (is_path && target.len() <= MAX_AGAIN).then_some(target)
    }

    /// The URL of the user's applications, also from another host; `None` where there are no such pages.
    pub fn applications(&self) -> Option<String> {
        let params = &self.look.params;
        let link = || format!("{}{}", params.origin, self.link("applications"));
        (!params.path.is_empty()).then(link)
    }

    /// The path and query of the page that `mode` names, in the same language.
    pub fn link(&self, mode: &str) -> String {
        self.in_same_language(format!("{}?mode={mode}", self.look.params.path))
    }

    /// A path of ours, its query begun, in the same language.
    pub fn in_same_language(&self, mut path: String) -> String {
        if self.is_asked {
            path.extend(["&", UI_LOCALES, "=", self.texts.tag()]);
        }
        path
    }
}

/// The ending and the Content-Type of a file with this content, or what it should be.
type FileType = fn(&[u8]) -> Result<(&'static str, &'static str), &'static str>;

impl Params {
    fn file(
        &self,
        key: &'static str,
        path: &Path,
        file_type: FileType,
    ) -> Result<Asset, PageFileError> {
        let error = |problem: String| PageFileError {
            key,
            place: path.display().to_string(),
            problem,
        };
        let body = fs::read(path).map_err(|cause| {
            let fix = "name a file that countersign can read";
            error(format!("cannot be read: {cause}; {fix}"))
        })?;
        if body.len() > MAX_BYTES {
            let most = MAX_BYTES / 1024;
            let problem = format!("it has more than {most} KiB; make it smaller");
            return Err(error(problem));
        }
        let file_type = file_type(&body).map_err(|problem| error(problem.to_owned()));
        Ok(self.asset(body, file_type?))
    }

    /// The first letter of the service's name in its colour. A letter needs no escape.
    fn sign(&self) -> Asset {
        let letter = monogram(&self.name);
        let colour = self.palette.sign();
        let svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48'><rect width='48' height='48' rx='12' \
             fill='{colour}'/><text x='24' y='34' text-anchor='middle' font-family='sans-serif' font-size='28' \
             font-weight='700' fill='#fff'>{letter}</text></svg>"
        );
        self.asset(svg.into(), ("svg", "image/svg+xml"))
    }

    fn asset(&self, body: Vec<u8>, (ending, content_type): (&'static str, &'static str)) -> Asset {
        let digest = digest::digest(&digest::SHA256, &body);
        let name = URL_SAFE_NO_PAD.encode(&digest.as_ref()[..16]);
        let path = format!("{}/{name}.{ending}", self.path.trim_end_matches('/'));
        Asset {
            url: format!("{}{path}", self.origin),
            path,
            content_type,
            body: body.into(),
        }
    }
}

fn image_type(content: &[u8]) -> Result<(&'static str, &'static str), &'static str> {
    match content {
        [0x89, b'P', b'N', b'G', ..] => Ok(("png", "image/png")),
        [0xff, 0xd8, 0xff, ..] => Ok(("jpg", "image/jpeg")),
        riff if riff.starts_with(b"RIFF") && riff.get(8..12) == Some(b"WEBP") => {
            Ok(("webp", "image/webp"))
        }
        text if std::str::from_utf8(text).is_ok_and(|text| text.contains("<svg")) => {
            Ok(("svg", "image/svg+xml"))
        }
        _ => Err("not an SVG, PNG, JPEG or WebP image; convert it to one of them"),
    }
}

fn css_type(content: &[u8]) -> Result<(&'static str, &'static str), &'static str> {
    match std::str::from_utf8(content) {
        Ok(_) => Ok(("css", "text/css; charset=utf-8")),
        Err(_) => Err("not valid UTF-8; save the file as UTF-8"),
    }
}
