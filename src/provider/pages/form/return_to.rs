//! Where a login leads: only to a path of our own origin.

use url::Url;

/// The origin for which a target is read. Which one it is makes no difference, as a target that names it leads to a path too.
const ANY_ORIGIN: &str = "https://origin.invalid";

/// Takes the path and query of `wanted`, if a browser would read it as a path of the origin that it was sent to.
///
/// The result is the output of the parser, not the input, so a browser finds nothing in it that was not checked here.
pub(crate) fn local_path(wanted: &str) -> Option<String> {
    if !wanted.starts_with('/') {
        return None;
    }
    let base = Url::parse(ANY_ORIGIN).ok()?;
    let target = base.join(wanted).ok()?;
    let is_ours = target.origin() == base.origin()
        && target.username().is_empty()
        && target.password().is_none();
    let path = match target.query() {
        Some(query) => format!("{}?{query}", target.path()),
        None => target.path().to_owned(),
    };
    // Dot segments may leave a path that begins like an authority.
    (is_ours && !path.starts_with("//")).then_some(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ORIGIN: &str = "https://service.example";

    #[test]
    fn keeps_paths_of_our_own() {
        for (wanted, path) in [
            ("/", "/"),
            ("/members/1?a=b&c", "/members/1?a=b&c"),
            ("/members#top", "/members"),
            ("/a b\"<>", "/a%20b%22%3C%3E"),
            ("/?next=//evil.example", "/?next=//evil.example"),
            ("/a/../b", "/b"),
        ] {
            assert_eq!(local_path(wanted).as_deref(), Some(path), "{wanted}");
        }
    }

    #[test]
    fn leads_nowhere_else() {
        for wanted in [
            "",
            "members",
            "https://evil.example/",
            "https:evil.example",
            "https://service.example/x",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\/evil.example",
            "\\\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "\t//evil.example",
            " //evil.example",
            "/\r\n/evil.example",
            "//user@service.example",
            "//user@origin.invalid",
            "//service.example:444/",
            "/..//evil.example",
            "/a/..//evil.example",
            "/.//evil.example",
            "/%2e/..//evil.example",
            "javascript:alert(1)",
            "?x",
            "#x",
        ] {
            assert_eq!(local_path(wanted), None, "{wanted:?}");
        }
        assert_eq!(
            local_path("/\r\nSet-Cookie:x").as_deref(),
            Some("/Set-Cookie:x")
        );
    }

    proptest! {
        #[test]
        fn a_browser_stays_here_and_the_field_is_safe(wanted in "[/\\\\.%@:?#\t\r\n a-z0-9\u{e9}]{0,24}") {
            if let Some(path) = local_path(&wanted) {
                let target = Url::parse(ORIGIN).unwrap().join(&path).unwrap();
                prop_assert_eq!(target.origin().ascii_serialization(), ORIGIN);
                prop_assert!(path.bytes().all(|byte| byte.is_ascii_graphic()), "{}", path);
            }
        }
    }
}
