//! The parts that all pages have in common: the operator's name, logo, colours and links, and the languages.

use std::{fs, path::Path, path::PathBuf, sync::LazyLock};

use aws_lc_rs::digest;
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use http::HeaderValue;

use super::{OwnResponse, colour::Palette};
use crate::{
    fields::parameter,
    language::{Languages, PageFileError, Texts},
    telemetry::metrics::Verdict,
};

/// The style sheet inside every page.
const STYLE: &str = include_str!("../../templates/style.css");

/// The most bytes of a file that pages refer to: it is held in memory.
const MAX_BYTES: usize = 256 * 1024;

/// The parameter of a query that names the languages of a page.
const UI_LOCALES: &str = "ui_locales";

/// The most characters of a value in `WWW-Authenticate`: proxies take heads of 4 KiB.
const MAX_PARAMETER_CHARS: usize = 1024;

/// The configuration of the look.
#[derive(Debug, Clone, Default)]
pub struct Params {
    /// `service.realm`: the realm of a 401.
    pub realm: String,
    /// The origin of `service.base_url`, from which logo and style sheet come.
    pub origin: String,
    /// `service.path`: they are below it.
    pub path: String,
    /// `pages.name`, else the realm: what the pages call the service.
    pub name: String,
    /// `pages.messages`
    pub messages: Option<PathBuf>,
    /// `pages.logo`
    pub logo: Option<PathBuf>,
    /// `pages.stylesheet`
    pub stylesheet: Option<PathBuf>,
    /// `pages.accent` and the other colours.
    pub palette: Palette,
    /// `pages.terms_url`
    pub terms_url: Option<String>,
    /// `pages.privacy_url`
    pub privacy_url: Option<String>,
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
    /// The response that it is. A file is its operator's, but an image can have scripts in it: none may run.
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
    /// The operator's style sheet.
    pub stylesheet: Option<Asset>,
    /// The Content-Security-Policy up to where forms may lead.
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
            look.languages.read(directory)?;
        }
        let params = &look.params;
        let logo = params.logo.as_ref();
        let logo = logo.map(|path| params.asset("pages.logo", path, image_type));
        let style = params.stylesheet.as_ref();
        let style = style.map(|path| params.asset("pages.stylesheet", path, css_type));
        (look.logo, look.stylesheet) = (logo.transpose()?, style.transpose()?);
        look.policy = look.policy();
        Ok(look)
    }

    /// A look without files.
    fn new(params: Params) -> Self {
        let mut look = Self {
            style: format!("{STYLE}{}", params.palette.css()),
            params,
            languages: Languages::built_in(),
            logo: None,
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
        let image = self.logo.as_ref().map(source);
        let image = image.map(|source| format!("; img-src{source}"));
        format!(
            "default-src 'none'; style-src 'sha256-{hash}'{style}{}; form-action 'self'",
            image.unwrap_or_default()
        )
    }

    /// The look of pages of a service that is not configured, such as those of the admin listener.
    pub fn plain() -> &'static Self {
        static PLAIN: LazyLock<Look> = LazyLock::new(|| Look::new(Params::default()));
        &PLAIN
    }

    /// The files that pages refer to.
    pub fn assets(&self) -> impl Iterator<Item = &Asset> {
        self.logo.iter().chain(&self.stylesheet)
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
    /// first), else by Accept-Language.
    pub fn frame(&self, query: Option<&str>, accept_language: Option<&HeaderValue>) -> Frame<'_> {
        let tags = query.and_then(|query| parameter(query.as_bytes(), UI_LOCALES).ok()?);
        let asked = tags.and_then(|tags| self.languages.of_ui_locales(&tags));
        let accepted = || accept_language.map(HeaderValue::as_bytes);
        Frame {
            look: self,
            texts: asked.unwrap_or_else(|| self.languages.accepted(accepted())),
            is_asked: asked.is_some(),
        }
    }
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
}

impl Frame<'_> {
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
    fn asset(
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
        let (ending, content_type) = file_type?;
        let digest = digest::digest(&digest::SHA256, &body);
        let name = URL_SAFE_NO_PAD.encode(&digest.as_ref()[..16]);
        let path = format!("{}/{name}.{ending}", self.path.trim_end_matches('/'));
        Ok(Asset {
            url: format!("{}{path}", self.origin),
            path,
            content_type,
            body: body.into(),
        })
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
