//! Parses a `curl` command line.

use crate::{oauth::percent, operator::explain::request::RequestText};

/// Options that change nothing that is signed.
const IGNORED: &str = "-s --silent -S --show-error -v --verbose -k --insecure -L --location -i --include -f --fail \
    -g --globoff --path-as-is --compressed --http1.1 --http2 -#";

/// Options with a value that change nothing that is signed.
const IGNORED_VALUES: &str = "-A --user-agent -b --cookie -c --cookie-jar -e --referer -m --max-time -o --output -w --write-out \
    --cacert --cert --connect-timeout --key --resolve --retry";

/// Reads the request from the words after `curl`.
///
/// # Errors
/// A word is not understood, or there is no URL.
pub(super) fn parse(text: &str) -> Result<RequestText, String> {
    if text.contains(" $'") {
        return Err("curl: $'…' is not understood here; write '…'".to_owned());
    }
    let joined = text.replace("\r\n", "\n").replace("\\\n", " ");
    let words = shlex::split(&joined).ok_or("curl: a quote is not closed")?;
    let mut words = words.into_iter();
    let mut command = CurlCommand::default();
    while let Some(word) = words.next() {
        if !IGNORED.split(' ').any(|ignored| ignored == word) {
            command.read(&word, &mut words)?;
        }
    }
    command.request()
}

/// The parts of the request that the words say.
#[derive(Default)]
struct CurlCommand {
    method: Option<String>,
    url: Option<String>,
    headers: Vec<String>,
    data: Vec<String>,
    is_multipart: bool,
    /// The data goes into the query.
    gets: bool,
}

impl CurlCommand {
    /// Reads a word, and the one after it if that is its value.
    fn read(&mut self, word: &str, words: &mut impl Iterator<Item = String>) -> Result<(), String> {
        // `--name=value` and `-Xvalue`.
        let is_short = word.len() > 2 && word.starts_with('-') && !word.starts_with("--");
        let (option, attached) = match word.split_once('=') {
            _ if is_short => word.split_at_checked(2).unwrap_or((word, "")),
            Some(parts) if word.starts_with("--") => parts,
            _ => (word, ""),
        };
        let mut value = || match attached {
            "" => words.next().ok_or(format!("curl: {option} has no value")),
            attached => Ok(attached.to_owned()),
        };
        match option {
            "-X" | "--request" => self.method = Some(value()?),
            "-H" | "--header" => self.headers.push(value()?),
            "--url" => self.url = Some(value()?),
            "-d" | "--data" | "--data-ascii" | "--data-binary" | "--data-urlencode" => {
                self.data.push(data(option, value()?)?);
            }
            "--data-raw" => self.data.push(value()?),
            "-F" | "--form" | "--form-string" => {
                // No parameter of a multipart body is signed.
                value()?;
                self.is_multipart = true;
            }
            "--json" => {
                self.data.push(value()?);
                let json = "Content-Type: application/json";
                self.headers.push(json.to_owned());
            }
            "-G" | "--get" => self.gets = true,
            "-I" | "--head" => self.method = Some("HEAD".to_owned()),
            _ if IGNORED_VALUES.split(' ').any(|ignored| ignored == option) => drop(value()?),
            _ if option.starts_with('-') => {
                return Err(format!(
                    "curl: {option} is not understood here; leave it out"
                ));
            }
            _ if self.url.is_none() => self.url = Some(word.to_owned()),
            _ => return Err("curl: there are two URLs".to_owned()),
        }
        Ok(())
    }

    /// The request that curl would send.
    fn request(mut self) -> Result<RequestText, String> {
        let mut url = self.url.ok_or("curl: there is no URL")?;
        let mut data = (!self.data.is_empty()).then(|| self.data.join("&"));
        if self.gets
            && let Some(query) = data.take()
        {
            url.push(if url.contains('?') { '&' } else { '?' });
            url += &query;
        }
        if !url.contains("://") {
            url = format!("http://{url}");
        }
        let usual = match data.is_some() || self.is_multipart {
            true => "POST",
            false => "GET",
        };
        if self.is_multipart {
            let multipart = "Content-Type: multipart/form-data";
            self.headers.push(multipart.to_owned());
        }
        // `-H 'X-Empty;'` is how a field without a value is sent.
        for header in &mut self.headers {
            if !header.contains(':') && header.ends_with(';') {
                header.pop();
                header.push(':');
            }
        }
        Ok(RequestText {
            method: self.method.unwrap_or_else(|| usual.to_owned()),
            url,
            data,
            headers: self.headers,
        })
    }
}

/// The value of an option for data, which must not name a file.
fn data(option: &str, value: String) -> Result<String, String> {
    let encodes = option == "--data-urlencode";
    let file = match encodes {
        true => value.find(['=', '@']),
        false => Some(0),
    };
    if file.is_some_and(|at| value[at..].starts_with('@')) {
        return Err(format!("curl: {option} names a file; paste its content"));
    }
    Ok(if encodes { urlencoded(&value) } else { value })
}

/// The text that `--data-urlencode` sends: `content`, `=content` or `name=content`, the content percent-encoded.
fn urlencoded(value: &str) -> String {
    match value.split_once('=') {
        Some(("", content)) => percent::encode(content.as_bytes()),
        Some((name, content)) => format!("{name}={}", percent::encode(content.as_bytes())),
        None => percent::encode(value.as_bytes()),
    }
}
