//! `store.url` and the URLs like it: a path or a URL, the latter perhaps with a password in it.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use toml::Value;

use crate::base::settings::{Directories, Reason, SettingValue, Text, deserialize_text};

/// The problem of the URL of a server whose user or password has a character in it that ends the host: the rest would be taken
/// for something that messages show.
pub fn unescaped_login(url: &str) -> Option<&'static str> {
    let (_, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#'])?;
    let (authority, rest) = rest.split_at(end);
    let before_query = rest.split('?').next().unwrap_or_default();
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let has_port = authority
        .rsplit_once(':')
        .is_none_or(|(_, port)| is_port(port));
    let in_query = rest.contains('@') && !has_port && !authority.contains('@');
    (before_query.contains('@') || in_query).then_some(
        "a /, ? or # in the user or the password ends the host; write %2F, %3F or %23 for it, and %40 for an @",
    )
}

/// Why a text is the address of another engine than SQLite, if it is.
fn other_engine(url: &str) -> Option<&'static str> {
    const LIBPQ: [&str; 7] = [
        "host=",
        "hostaddr=",
        "port=",
        "user=",
        "password=",
        "dbname=",
        "service=",
    ];

    let is_libpq = |word: &str| LIBPQ.iter().any(|key| word.starts_with(key));
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    Some(match scheme {
        _ if url.starts_with(['"', '\'']) => {
            "it begins with a quotation mark; write it without those that are a part of the text"
        }
        _ if url.starts_with("jdbc:") => {
            "this is a URL of Java; write postgres://USER:PASSWORD@HOST/DATABASE and set store.backend = \"postgres\", or write the path of a file"
        }
        Some("sqlite" | "sqlite3") => "write the path of the file, without sqlite://",
        Some("postgres" | "postgresql") => {
            "this is the URL of a server; set store.backend = \"postgres\", or write the path of a file"
        }
        Some(_) => {
            "store.backend = \"sqlite\" takes the path of a file, and store.backend = \"postgres\" a URL that begins with postgres://; records live in no other server"
        }
        None if url.split_whitespace().any(is_libpq) => {
            "this is a connection string of libpq; write postgres://USER:PASSWORD@HOST/DATABASE and set store.backend = \"postgres\""
        }
        None if has_login(url) => {
            "this is the login and the host of a server; write postgres://USER:PASSWORD@HOST/DATABASE and set store.backend = \"postgres\", or write the path of a file with its directory first"
        }
        None => return None,
    })
}

/// Whether a text without a scheme begins as `USER:PASSWORD@HOST` does: taken for a path, messages would show the password.
fn has_login(url: &str) -> bool {
    let login = url.rsplit_once('@').map_or("", |(login, _)| login);
    let user = login.split_once(':').map_or("/", |(user, _)| user);
    !user.contains('/') && user != "sqlite"
}

/// The place of the store. Does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// The URL as written.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The path of the SQLite file; `sqlite:` may be in front of it.
    pub fn sqlite_path(&self) -> PathBuf {
        Path::new(self.0.strip_prefix("sqlite:").unwrap_or(&self.0)).to_owned()
    }

    /// Why this cannot be the path of a SQLite file.
    #[must_use]
    pub fn sqlite_problem(&self) -> Option<&'static str> {
        let path = self.0.strip_prefix("sqlite:").unwrap_or(&self.0);
        if let Some(problem) = other_engine(&self.0) {
            Some(problem)
        } else if path.starts_with("file:") {
            Some("write the path of the file, without file:")
        } else if path.starts_with(':') {
            Some("a store in memory ends with the process; write the path of a file")
        } else if path.is_empty() || path.ends_with('/') {
            Some("this is not the path of a file")
        } else {
            None
        }
    }

    /// The path of the file, resolved against `data`, or the URL of a server with the paths of the files that it names,
    /// resolved against `directory`.
    fn absolute(&self, data: &Path, directory: &Path) -> String {
        /// Parameters that name files, in URLs of PostgreSQL and of Redis.
        const FILES: [&str; 6] = [
            "sslrootcert",
            "sslcert",
            "sslkey",
            "ca",
            "certificate",
            "key",
        ];

        if self.sqlite_problem().is_none() {
            let path = data.join(self.sqlite_path());
            return path.to_string_lossy().into_owned();
        }
        let Some((base, query)) = self.0.split_once('?') else {
            return self.0.clone();
        };
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if FILES.contains(&name) && !value.is_empty() => {
                let value = percent_decode_str(value).decode_utf8_lossy();
                let path = directory.join(&*value);
                let path =
                    utf8_percent_encode(&path.to_string_lossy(), NON_ALPHANUMERIC).to_string();
                format!("{name}={path}")
            }
            _ => pair.to_owned(),
        });
        format!("{base}?{}", pairs.collect::<Vec<_>>().join("&"))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

impl Text for StoreUrl {
    const EXPECTED: &'static str = "a path such as \"countersign.db\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        if text.is_empty() {
            return Err("it is empty".into());
        }
        Ok(Self(text.to_owned()))
    }
}

impl SettingValue for StoreUrl {
    fn resolved(written: Value, directories: Directories<'_>) -> Result<Value, &'static str> {
        match String::resolved(written, directories)? {
            Value::String(text) => Ok(Self(text)
                .absolute(directories.data, directories.file)
                .into()),
            other => Ok(other),
        }
    }
}

deserialize_text!(StoreUrl);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::words;

    #[test]
    fn resolves_paths_of_files_and_of_certificates() {
        let resolved = |text: &str| {
            let url = StoreUrl::parse(text).unwrap();
            url.absolute(Path::new("/data"), Path::new("/etc/cs"))
        };
        for (text, expected) in [
            ("a.db", "/data/a.db"),
            ("sqlite:a.db", "/data/a.db"),
            ("/var/a.db", "/var/a.db"),
            ("postgres://u:p@h/db", "postgres://u:p@h/db"),
            (
                "postgres://h/db?sslmode=require&sslrootcert=ca%20x.pem",
                "postgres://h/db?sslmode=require&sslrootcert=%2Fetc%2Fcs%2Fca%20x%2Epem",
            ),
            ("rediss://h?ca=/ca.pem", "rediss://h?ca=%2Fca%2Epem"),
        ] {
            assert_eq!(resolved(text), expected);
        }
    }

    #[test]
    fn distinguishes_files_from_what_is_none() {
        let url = |text: &str| StoreUrl::parse(text).unwrap();
        for text in words("a.db ./a.db /var/lib/a.db sqlite:a.db sqlite:/a.db") {
            assert_eq!(url(text).sqlite_problem(), None, "{text}");
        }
        assert_eq!(url("sqlite:/a.db").sqlite_path(), Path::new("/a.db"));
        for text in words("sqlite: file:a.db?mode=ro :memory: sqlite::memory: data/") {
            assert!(url(text).sqlite_problem().is_some(), "{text}");
        }
        for text in words("a@b.db ./u:p@h dir/a:b@c.db sqlite:a@b.db a:b.db") {
            assert_eq!(url(text).sqlite_problem(), None, "{text}");
        }
        for (text, fix) in [
            ("postgres://h/db", "set store.backend = \"postgres\""),
            ("mysql://h/db", "store.backend = \"postgres\""),
            ("redis://h", "store.backend = \"postgres\""),
            ("jdbc:postgresql://h/db", "write postgres://"),
            ("host=h user=u dbname=d", "write postgres://"),
            ("password=p port=5432", "write postgres://"),
            ("u:p@h", "write postgres://"),
            ("u:p@s@h/db", "write postgres://"),
            ("sqlite:///a.db", "without sqlite://"),
            ("'a.db'", "quotation mark"),
            ("\"postgres://h/db\"", "quotation mark"),
        ] {
            let problem = url(text).sqlite_problem();
            assert!(
                problem.is_some_and(|it| it.contains(fix)),
                "{text}: {problem:?}"
            );
            // It is no file that is resolved.
            assert_eq!(url(text).absolute(Path::new("/d"), Path::new("/e")), text);
        }
        assert_eq!(format!("{:?}", url("postgres://u:p@h/db")), "<redacted>");
    }
}
