//! The browser of a session, by names that its user recognizes, and what it wants a page for.

pub(crate) mod cookies;

use http::{HeaderMap, Method, header, request::Parts};

/// The names in User-Agent, the most specific first: nearly all browsers name Safari, and many Chrome.
const BROWSERS: [(&str, &str); 12] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("YaBrowser/", "Yandex Browser"),
    ("Vivaldi/", "Vivaldi"),
    ("Whale/", "Whale"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Chromium/", "Chromium"),
    ("Safari/", "Safari"),
];

const SYSTEMS: [(&str, &str); 7] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
];

/// Whether the user goes to the page: it is not for a frame, a picture or a script, and is not fetched in advance (Fetch Metadata
/// Request Headers). Browsers that do not say so go there.
pub(super) fn goes_to(parts: &Parts) -> bool {
    let has_only = |name, wanted: &str| {
        let mut values = parts.headers.get_all(name).iter();
        values.all(|value| value == wanted)
    };
    let is_in_advance = ["sec-purpose", "purpose"]
        .into_iter()
        .any(|name| parts.headers.contains_key(name));
    parts.method == Method::GET
        && has_only("sec-fetch-dest", "document")
        && has_only("sec-fetch-mode", "navigate")
        && !is_in_advance
}

/// The browser and its system, each `None` if User-Agent has no known name. Nothing else of the field is kept: it is
/// the caller's, and says more about a user than a page needs.
pub(super) fn named(headers: &HeaderMap) -> [Option<&'static str>; 2] {
    let agent = headers.get(header::USER_AGENT);
    let agent = agent.and_then(|agent| agent.to_str().ok());
    let agent = agent.unwrap_or_default();
    let first = |known: &[(&str, &'static str)]| {
        let found = known.iter().find(|(sign, _)| agent.contains(sign));
        found.map(|(_, name)| *name)
    };
    [first(&BROWSERS), first(&SYSTEMS)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_usual_browsers_and_nothing_that_a_caller_makes_up() {
        let chrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
        for (agent, browser, system) in [
            (chrome, Some("Chrome"), Some("Windows")),
            (
                &format!("{chrome} Edg/140.0"),
                Some("Edge"),
                Some("Windows"),
            ),
            (
                &format!("{chrome} OPR/120.0"),
                Some("Opera"),
                Some("Windows"),
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0",
                Some("Firefox"),
                Some("Linux"),
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
                Some("Safari"),
                Some("iPhone"),
            ),
            (
                "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36",
                Some("Samsung Internet"),
                Some("Android"),
            ),
            ("curl/8.0", None, None),
            ("<script>", None, None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, agent.parse().unwrap());
            assert_eq!(named(&headers), [browser, system], "{agent}");
        }
        assert_eq!(named(&HeaderMap::new()), [None, None]);
    }
}
