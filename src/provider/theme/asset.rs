//! The files that pages refer to: logo and style sheet.

use std::{fs, path::Path};

use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;

use crate::base::language::PageFileError;

/// The most bytes of a file that pages refer to: it is held in memory.
const MAX_BYTES: usize = 256 * 1024;

/// A file that pages refer to, at a path that changes with its content.
pub struct Asset {
    /// The path under which it is served.
    pub path: String,
    /// The whole URL: an error page may be on another host.
    pub url: String,
    /// Its Content-Type.
    pub content_type: &'static str,
    /// Its content, which responses share.
    pub body: Bytes,
}

impl Asset {
    /// A file of the service at `origin`, below its `path`.
    pub(super) fn new(
        (origin, path): (&str, &str),
        body: Vec<u8>,
        (ending, content_type): (&'static str, &'static str),
    ) -> Self {
        let digest = digest::digest(&digest::SHA256, &body);
        let name = URL_SAFE_NO_PAD.encode(&digest.as_ref()[..16]);
        let path = format!("{}/{name}.{ending}", path.trim_end_matches('/'));
        Self {
            url: format!("{origin}{path}"),
            path,
            content_type,
            body: body.into(),
        }
    }

    /// Reads the file that `key` of the configuration names.
    ///
    /// # Errors
    /// [`PageFileError`]: it cannot be read, is too large, or is of another type.
    pub(super) fn read(
        service: (&str, &str),
        key: &'static str,
        file: &Path,
        file_type: FileType,
    ) -> Result<Self, PageFileError> {
        let error = |problem: String| PageFileError {
            key,
            file: file.display().to_string(),
            problem,
        };
        let body = fs::read(file).map_err(|cause| {
            let fix = "name a file that countersign can read";
            error(format!("cannot be read: {cause}; {fix}"))
        })?;
        if body.len() > MAX_BYTES {
            let most = MAX_BYTES / 1024;
            let problem = format!("it has more than {most} KiB; make it smaller");
            return Err(error(problem));
        }
        let file_type = file_type(&body).map_err(|problem| error(problem.to_owned()));
        Ok(Self::new(service, body, file_type?))
    }
}

/// The ending and the Content-Type of a file with this content, or what it should be.
pub(super) type FileType = fn(&[u8]) -> Result<(&'static str, &'static str), &'static str>;

pub(super) fn image_type(content: &[u8]) -> Result<(&'static str, &'static str), &'static str> {
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

pub(super) fn css_type(content: &[u8]) -> Result<(&'static str, &'static str), &'static str> {
    match std::str::from_utf8(content) {
        Ok(_) => Ok(("css", "text/css; charset=utf-8")),
        Err(_) => Err("not valid UTF-8; save the file as UTF-8"),
    }
}
