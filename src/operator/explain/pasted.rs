//! Parses a pasted request: a `curl` command line, or HTTP/1.1 as it is on the wire.

mod curl;

use super::request::RequestText;

/// Reads the request from its text.
///
/// # Errors
/// The text is neither form of a request.
pub fn parse(text: &str) -> Result<RequestText, String> {
    let text = text.trim_start();
    match text.strip_prefix("curl") {
        Some(rest) if rest.starts_with(char::is_whitespace) => curl::parse(rest),
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
