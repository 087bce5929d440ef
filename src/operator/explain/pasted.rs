//! Parses a pasted request: a `curl` command line, or HTTP/1.1 as it is on the wire.

use super::request::RequestText;
use crate::oauth::percent;

/// Reads the request from its text.
///
/// # Errors
/// The text is neither form of a request.
pub fn parse(text: &str) -> Result<RequestText, String> {
    let text = text.trim_start();
    match text.strip_prefix("curl") {
        Some(rest) if rest.starts_with(char::is_whitespace) => curl(rest),
        _ => http(text),
    }
}

/// Reads HTTP/1.1 as it goes over the wire; the lines may end with a bare line feed, and the empty line may be missing.
///
/// # Errors
/// The text is not a request.
pub fn http(text: &str) -> Result<RequestText, String> {
    const NOT_HTTP: &str = "this begins neither with curl nor with METHOD TARGET HTTP/1.1";
    let mut fields = [httparse::EMPTY_HEADER; 100];
    let mut request = httparse::Request::new(&mut fields);
    let line = text.lines().next().unwrap_or_default();
    // Tools show the requests of later versions in the same form.
    let version = line.rsplit(' ').next().unwrap_or_default();
    let is_later = ["HTTP/2", "HTTP/2.0", "HTTP/3"].contains(&version);
    let (line, rest) = text.split_at(line.len());
    let line = match line.strip_suffix(version).filter(|_| is_later) {
        Some(before) => format!("{before}HTTP/1.1"),
        None => line.to_owned(),
    };
    let whole = format!("{line}{rest}\r\n\r\n");
    let head = match request.parse(whole.as_bytes()) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Err(NOT_HTTP.to_owned()),
        Err(httparse::Error::Token | httparse::Error::Version) => return Err(NOT_HTTP.to_owned()),
        Err(error) => return Err(format!("this is not HTTP: {error}")),
    };
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return Err(NOT_HTTP.to_owned());
    };
    let body = whole.get(head..).unwrap_or_default();
    let body = body.strip_suffix("\r\n\r\n").unwrap_or_default();
    let field = |field: &httparse::Header<'_>| {
        format!("{}: {}", field.name, String::from_utf8_lossy(field.value))
    };
    let mut headers: Vec<String> = request.headers.iter().map(field).collect();
    let named = |name: &str| {
        let mut fields = request.headers.iter();
        let field = fields.find(|field| field.name.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(field.value).into_owned())
    };
    let mut url = target.to_owned();
    if target.starts_with('/') {
        let host = named("Host").ok_or("there is no Host, which the URL needs")?;
        // A request line without a scheme is for https, except on loopback.
        let mut local = ["localhost", "127.", "[::1]"].iter();
        let scheme = match local.any(|local| host.starts_with(local)) {
            true => "http",
            false => "https",
        };
        url = format!("{scheme}://{host}{target}");
    }
    let length = named("Content-Length").and_then(|length| length.parse().ok());
    // An editor puts a line break at the end of a file.
    let body = match length {
        Some(length) => body.get(..length).unwrap_or(body),
        None => body.strip_suffix('\n').unwrap_or(body),
    };
    if named("Content-Type").is_none() {
        // Without a Content-Type, the proxy does not read a body as a form.
        headers.push("Content-Type:".to_owned());
    }
    Ok(RequestText {
        method: method.to_owned(),
        url,
        data: (!body.is_empty()).then(|| body.to_owned()),
        headers,
    })
}

/// Options that change nothing that is signed.
const IGNORED: &str = "-s --silent -S --show-error -v --verbose -k --insecure -L --location -i --include -f --fail \
    -g --globoff --path-as-is --compressed --http1.1 --http2 -#";

/// Options with a value that change nothing that is signed.
const IGNORED_VALUES: &str = "-A --user-agent -b --cookie -c --cookie-jar -e --referer -m --max-time -o --output -w --write-out \
    --cacert --cert --connect-timeout --key --resolve --retry";

fn curl(text: &str) -> Result<RequestText, String> {
    if text.contains(" $'") {
        return Err("curl: $'…' is not understood here; write '…'".to_owned());
    }
    let joined = text.replace("\r\n", "\n").replace("\\\n", " ");
    let words = shlex::split(&joined).ok_or("curl: a quote is not closed")?;
    let mut words = words.into_iter();
    let (mut method, mut url, mut get) = (None, None, false);
    let (mut headers, mut data, mut multipart) = (Vec::new(), Vec::new(), false);
    while let Some(word) = words.next() {
        if IGNORED.split(' ').any(|ignored| ignored == word) {
            continue;
        }
        // `--name=value` and `-Xvalue`.
        let is_short = word.len() > 2 && word.starts_with('-') && !word.starts_with("--");
        let (option, attached) = match word.split_once('=') {
            _ if is_short => word.split_at_checked(2).unwrap_or((&word, "")),
            Some(parts) if word.starts_with("--") => parts,
            _ => (&*word, ""),
        };
        let mut value = || match attached {
            "" => words.next().ok_or(format!("curl: {option} has no value")),
            attached => Ok(attached.to_owned()),
        };
        match option {
            "-X" | "--request" => method = Some(value()?),
            "-H" | "--header" => headers.push(value()?),
            "--url" => url = Some(value()?),
            "-d" | "--data" | "--data-ascii" | "--data-binary" | "--data-urlencode" => {
                let value = value()?;
                let encodes = option == "--data-urlencode";
                let file = if encodes {
                    value.find(['=', '@'])
                } else {
                    Some(0)
                };
                if file.is_some_and(|at| value[at..].starts_with('@')) {
                    return Err(format!("curl: {option} names a file; paste its content"));
                }
                data.push(if encodes { urlencoded(&value) } else { value });
            }
            "--data-raw" => data.push(value()?),
            "-F" | "--form" | "--form-string" => {
                // No parameter of a multipart body is signed.
                value()?;
                multipart = true;
            }
            "--json" => {
                data.push(value()?);
                headers.push("Content-Type: application/json".to_owned());
            }
            "-G" | "--get" => get = true,
            "-I" | "--head" => method = Some("HEAD".to_owned()),
            _ if IGNORED_VALUES.split(' ').any(|ignored| ignored == option) => drop(value()?),
            _ if option.starts_with('-') => {
                return Err(format!(
                    "curl: {option} is not understood here; leave it out"
                ));
            }
            _ if url.is_none() => url = Some(word),
            _ => return Err("curl: there are two URLs".to_owned()),
        }
    }
    let mut url = url.ok_or("curl: there is no URL")?;
    let mut data = (!data.is_empty()).then(|| data.join("&"));
    if get && let Some(query) = data.take() {
        url.push(if url.contains('?') { '&' } else { '?' });
        url += &query;
    }
    if !url.contains("://") {
        url = format!("http://{url}");
    }
    let usual = match data.is_some() || multipart {
        true => "POST",
        false => "GET",
    };
    if multipart {
        headers.push("Content-Type: multipart/form-data".to_owned());
    }
    // `-H 'X-Empty;'` is how a field without a value is sent.
    for header in &mut headers {
        if !header.contains(':') && header.ends_with(';') {
            header.pop();
            header.push(':');
        }
    }
    Ok(RequestText {
        method: method.unwrap_or_else(|| usual.to_owned()),
        url,
        data,
        headers,
    })
}

/// The text that `--data-urlencode` sends: `content`, `=content` or `name=content`, the content percent-encoded.
fn urlencoded(value: &str) -> String {
    match value.split_once('=') {
        Some(("", content)) => percent::encode(content.as_bytes()),
        Some((name, content)) => format!("{name}={}", percent::encode(content.as_bytes())),
        None => percent::encode(value.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, String, Option<String>, Vec<String>) {
        let RequestText {
            method,
            url,
            data,
            headers,
        } = parse(text).unwrap();
        (method, url, data, headers)
    }

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn reads_a_curl_command_as_a_shell_does() {
        let text = "curl -XPUT -s 'https://h/x?a=[1]' \\\n  -H 'Authorization: OAuth a=\"b\"' --header=\"X-Y: a\\\"\\$b\" \
                    --data-raw 'it'\\''s é' -H 'X-Empty;' --compressed";
        assert_eq!(
            parsed(text),
            (
                "PUT".into(),
                "https://h/x?a=[1]".into(),
                Some("it's é".into()),
                strings(&["Authorization: OAuth a=\"b\"", "X-Y: a\"$b", "X-Empty:"])
            )
        );
        let (method, url, data, _) = parsed("curl h/x -d a=1 -d b=2");
        assert_eq!(
            (&*method, &*url, data.as_deref()),
            ("POST", "http://h/x", Some("a=1&b=2"))
        );
        let (method, url, data, _) = parsed("curl -G --url https://h/x?z -d a=1");
        assert_eq!((&*method, &*url, data), ("GET", "https://h/x?z&a=1", None));
        let (method, url, data, _) =
            parsed("curl -G https://h/x -A me --data-urlencode 'q=a b&c' --data-urlencode '=d/e'");
        assert_eq!((&*method, data), ("GET", None));
        assert_eq!(url, "https://h/x?q=a%20b%26c&d%2Fe");
        let (method, _, data, headers) = parsed("curl https://h/x -F 'file=@photo.jpg' --form a=b");
        assert_eq!((&*method, data), ("POST", None));
        assert_eq!(headers, ["Content-Type: multipart/form-data"]);
        assert_eq!(parsed("curl -I h").0, "HEAD");
        assert_eq!(
            parsed("curl h --json '{}'").3,
            ["Content-Type: application/json"]
        );
    }

    #[test]
    fn reads_http_as_it_goes_over_the_wire() {
        let text = "POST /x?a=1 HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                    Content-Length: 3\r\n\r\nb=2\r\n";
        let (method, url, data, headers) = parsed(text);
        assert_eq!(
            (&*method, &*url, data.as_deref()),
            ("POST", "https://api.example.com/x?a=1", Some("b=2"))
        );
        assert_eq!(headers.len(), 3);
        let (_, url, data, headers) = parsed("PUT /x HTTP/1.1\nHost: 127.0.0.1:80\n\n{}\n");
        assert_eq!(
            (&*url, data.as_deref()),
            ("http://127.0.0.1:80/x", Some("{}"))
        );
        // A body without a type is no form to the server.
        assert_eq!(headers, ["Host: 127.0.0.1:80", "Content-Type:"]);
        assert_eq!(
            parsed("GET http://h/x HTTP/1.1\r\nHost: other\r\n").1,
            "http://h/x"
        );
    }

    #[test]
    fn rejects_text_that_is_not_a_request() {
        for [text, problem] in crate::text::rows(
            r"
                                              | this begins neither with curl nor with METHOD TARGET HTTP/1.1
            curly h                           | this begins neither with curl nor with METHOD TARGET HTTP/1.1
            GET /x HTTP/1.1\n\n               | there is no Host, which the URL needs
            curl -s                           | curl: there is no URL
            curl h -X                         | curl: -X has no value
            curl h h                          | curl: there are two URLs
            curl h -u a:b                     | curl: -u is not understood here; leave it out
            curl 'h                           | curl: a quote is not closed
            curl h -d $'a\\nb'                | curl: $'…' is not understood here; write '…'
            curl h -d @file                   | curl: -d names a file; paste its content
            curl h --data-urlencode name@file | curl: --data-urlencode names a file; paste its content
        ",
        ) {
            assert_eq!(parse(text).err().as_deref(), Some(problem), "{text}");
        }
    }
}
