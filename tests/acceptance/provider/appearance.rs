//! The appearance set by the operator: name, logo, colours, style sheet and links of the pages.

use rustix::process::Signal;

use crate::support::{
    Call, PATIENCE, Proxy, Reply, Upstream, User, Visitor, browser::Browser, has, http::Answer,
    legs::LOGIN, legs::authorization, proxy::Builder, until, within,
};

const SVG: &str = "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";

fn with_files(api: &Upstream, files: &[(&str, &[u8])], config: &str) -> Builder {
    let builder = Proxy::in_front_of(api);
    let directory = builder.directory().display().to_string();
    for (name, content) in files {
        std::fs::write(builder.directory().join(name), content).unwrap();
    }
    builder.config(&config.replace("DIR", &directory))
}

fn html(proxy: &Proxy, target: &str) -> Answer {
    proxy.send(Call::get(target).header("Accept", "text/html"))
}

/// The URL in the page between `before` and the next quotation mark.
#[track_caller]
fn url(page: &Answer, before: &str) -> String {
    let text = page.text();
    let rest = text
        .split(before)
        .nth(1)
        .unwrap_or_else(|| panic!("{before}: {text}"));
    rest.split('"').next().unwrap().to_owned()
}

/// The icon of a page, which its policy allows.
#[track_caller]
fn icon(proxy: &Proxy, page: &Answer) -> Answer {
    let icon = url(page, "<link rel=\"icon\" href=\"");
    let policy = page.header("content-security-policy").unwrap();
    let images = policy.split("; img-src ").nth(1).unwrap();
    let mut images = images.split(';').next().unwrap().split(' ');
    assert!(images.any(|image| image == icon), "{policy}");
    let answer = proxy.send(Call::get(icon.strip_prefix(&proxy.origin()).unwrap()));
    answer.has_status(200);
    assert_eq!(answer.header("content-type"), Some("image/svg+xml"));
    answer
}

#[test]
fn logo_and_style_sheet_have_our_origin_and_run_no_script() {
    let api = Upstream::replying(|_| Reply::ok("of the API"));
    let files: [(&str, &[u8]); 2] = [("logo", SVG.as_bytes()), ("pages.css", b"main{color:red}")];
    let config = "pages.name = 'A <b> & C'\npages.logo = 'DIR/logo'\npages.stylesheet = 'DIR/pages.css'\n\
        service.public_api_urls = ['http://api.test', 'http://other.test']\n\
        operations.unlisted = 'anonymous'";
    let proxy = with_files(&api, &files, config).start();
    let origin = proxy.origin();
    let login = html(&proxy, LOGIN);
    let (logo, style) = (
        url(&login, "<img src=\""),
        url(&login, "<link rel=\"stylesheet\" href=\""),
    );
    assert_eq!(icon(&proxy, &login).text(), SVG);
    has(&login.text(), &["alt=\"A &#60;b&#62; &#38; C\""]);
    has(&login.text(), &[" · A &#60;b&#62; &#38; C</title>"]);
    let policy = login.header("content-security-policy").unwrap();
    has(
        policy,
        &[&format!(" {style}; img-src {logo}; form-action 'self';")],
    );
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    for (file, kind, body) in [
        (&logo, "image/svg+xml", SVG),
        (&style, "text/css; charset=utf-8", "main{color:red}"),
    ] {
        let path = file
            .strip_prefix(&origin)
            .unwrap_or_else(|| panic!("{file} is at {origin}"));
        assert!(path.starts_with("/service.oauth/"), "{path}");
        let answer = proxy.send(Call::get(path));
        answer.has_status(200);
        assert_eq!(
            (answer.header("content-type"), answer.text().as_str()),
            (Some(kind), body)
        );
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none';") && policy.ends_with("; sandbox"),
            "{policy}"
        );
        assert!(!policy.contains("script"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert!(
            answer
                .header("cache-control")
                .unwrap()
                .contains("immutable")
        );
        assert_eq!(answer.header("set-cookie"), None);
        proxy.send(Call::post(path)).has_status(405);
        // The path is one of the API like any other on the API's hosts.
        for host in ["api.test", "other.test"] {
            assert_eq!(proxy.send(Call::get(path).host(host)).text(), "of the API");
        }
        let other = format!("{}x", path.trim_end_matches(|ending: char| ending != '.'));
        proxy.send(Call::get(&other)).has_status(404);
    }
    assert_eq!(api.requests().len(), 4);
    // An error page on another host shows them too.
    let other = proxy.send(
        Call::get("/x?oauth_token=1")
            .host("api.test")
            .header("Accept", "text/html"),
    );
    assert_eq!(url(&other, "<img src=\""), logo);
}

#[test]
fn browsers_that_prefer_dark_pages_show_the_dark_logo() {
    let dark = SVG.replace("1", "2");
    let files: [(&str, &[u8]); 2] = [("logo", SVG.as_bytes()), ("dark", dark.as_bytes())];
    let config = "pages.logo = 'DIR/logo'\npages.logo_dark = 'DIR/dark'";
    let proxy = with_files(&Upstream::start(), &files, config).start();
    let (consumer, user) = (proxy.consumer("Shop"), proxy.user("ada"));
    let login = html(&proxy, LOGIN);
    let asked = proxy.request_token(&consumer, "oob");
    for page in [&login, &proxy.consent(&asked, &user).1.answer] {
        let (logo, source) = (url(page, "<img src=\""), url(page, "<source srcset=\""));
        let media = format!("<source srcset=\"{source}\" media=\"(prefers-color-scheme: dark)\">");
        has(&page.text(), &[&media]);
        let policy = page.header("content-security-policy").unwrap();
        has(policy, &[&format!("img-src {logo} {source};")]);
        let path = source.strip_prefix(&proxy.origin()).unwrap();
        assert_eq!(proxy.send(Call::get(path)).text(), dark);
    }
    // In a browser.
    let browser = Browser::start();
    browser.open(&format!("{}{LOGIN}", proxy.origin()));
    for (is_dark, before) in [(false, "<img src=\""), (true, "<source srcset=\"")] {
        browser.emulate(1280, is_dark);
        let shown = url(&login, before);
        until("the other logo", || {
            browser.script("return document.images[0].currentSrc") == *shown
        });
    }
}

#[test]
fn reload_gives_a_new_logo_a_new_path_and_rejects_a_broken_one() {
    let api = Upstream::start();
    let proxy = with_files(&api, &[("logo", SVG.as_bytes())], "pages.logo = 'DIR/logo'").start();
    let logo = || url(&html(&proxy, LOGIN), "<img src=\"");
    let first = logo();
    std::fs::write(proxy.directory().join("logo"), b"\x89PNG\r\n\x1a\n...").unwrap();
    proxy.signal(Signal::HUP);
    let second = within(PATIENCE, "another path", || {
        let now = logo();
        (now != first).then_some(now)
    });
    assert!(
        first.ends_with(".svg") && second.ends_with(".png"),
        "{first} {second}"
    );
    std::fs::write(proxy.directory().join("logo"), "no image").unwrap();
    proxy.signal(Signal::HUP);
    proxy.logs(&["pages.logo", "convert it"]);
    assert_eq!(logo(), second);
}

#[test]
fn an_unusable_logo_or_style_sheet_is_an_invalid_configuration() {
    let big = vec![b'a'; 257 * 1024];
    for (config, content, problem) in [
        (
            "pages.logo = 'DIR/none'",
            &b""[..],
            "pages.logo: DIR/none: cannot be read",
        ),
        (
            "pages.logo = 'DIR/file'",
            b"GIF89a",
            "pages.logo: DIR/file: not an SVG",
        ),
        (
            "pages.stylesheet = 'DIR/file'",
            b"\xff",
            "pages.stylesheet: DIR/file: not valid UTF-8",
        ),
        (
            "pages.stylesheet = 'DIR/file'",
            &big,
            "pages.stylesheet: DIR/file: it has more than 256 KiB",
        ),
        (
            "pages.accent = 'blue'",
            b"",
            "pages.accent: expected a colour",
        ),
        (
            "pages.terms_url = '/terms'",
            b"",
            "pages.terms_url: expected the address of a web page",
        ),
        (
            "pages.privacy_url = 'javascript:alert(1)'",
            b"",
            "neither https:// nor http://",
        ),
    ] {
        let builder = with_files(&Upstream::start(), &[("file", content)], config);
        let directory = builder.directory().display().to_string();
        for ended in [builder.run(&["check"], ""), builder.serve_fails()] {
            assert_eq!(ended.code(), Some(2), "{ended:?}");
            has(&ended.stderr, &[&problem.replace("DIR", &directory)]);
        }
    }
}

#[test]
fn colours_of_the_operator_are_in_the_pages() {
    let api = Upstream::start();
    let config = "pages.accent = '#ffcc00'\npages.background = '#fdf7fb'\npages.name = 'Zoo'";
    let proxy = with_files(&api, &[], config).start();
    let page = html(&proxy, LOGIN);
    has(
        &page.text(),
        &[
            "--accent:oklch(from #ffcc00 min(l,0.49) ",
            "<meta name=\"theme-color\" content=\"oklch(from #fdf7fb 0.97 min(c,0.015) h)\" \
             media=\"(prefers-color-scheme: light)\">",
            "<meta name=\"theme-color\" content=\"#12151b\" media=\"(prefers-color-scheme: dark)\">",
        ],
    );
    has(&icon(&proxy, &page).text(), &["fill='#fff'>Z</text>"]);
    // In a browser the icon has the colour of the main button, and the theme colour is that of the page.
    let browser = Browser::start();
    browser.emulate(1280, false);
    browser.open(&format!("{}{LOGIN}", proxy.origin()));
    let colours = "
        const pixel = draw => {
            const canvas = document.createElement('canvas').getContext('2d');
            draw(canvas);
            return canvas.getImageData(24, 3, 1, 1).data.join();
        };
        const filled = colour => pixel(canvas => {
            canvas.fillStyle = colour;
            canvas.fillRect(0, 0, 48, 48);
        });
        const shown = selector => filled(getComputedStyle(document.querySelector(selector)).backgroundColor);
        const icon = new Image(48, 48);
        icon.src = document.querySelector('link[rel=icon]').href;
        return icon.decode().then(() => [
            pixel(canvas => canvas.drawImage(icon, 0, 0, 48, 48)),
            shown('button.main'),
            filled(document.querySelector('meta[name=theme-color]').content),
            shown('body'),
        ]);";
    let colours = browser.script(colours);
    assert!(
        colours[0] == colours[1] && colours[2] == colours[3],
        "{colours}"
    );
    assert_ne!(colours[0], colours[2]);
}

#[test]
fn check_warns_of_an_accent_that_pages_show_in_another_shade() {
    let check = |light: &str, more: &str| {
        let config = format!("pages.accent = '{light}'\npages.accent_dark = '#9ab8ff'\n{more}");
        let builder = with_files(&Upstream::start(), &[], &config);
        builder.run(&["check"], "").stderr
    };
    let warned = check("#ffcc00", "");
    let text = "pages.accent: light pages show #865600 instead of #ffcc00, so that text in it has a contrast of 4.5 to 1; \
                a darker colour is shown as it is";
    assert!(warned.contains(text), "{warned}");
    assert!(!check("#0b6a43", "").contains("#0b6a43"));
    let old = check("#0b6a43", "pages.contrast = 'AA'");
    assert!(
        old.contains("pages.contrast: this key was removed"),
        "{old}"
    );
}

#[test]
fn login_and_consent_link_to_terms_and_privacy() {
    let api = Upstream::start();
    let config = "pages.terms_url = 'https://example.com/terms?a=1&b=%222%22'\n\
        pages.privacy_url = 'https://example.com/privacy'\npages.recovery_url = 'https://example.com/forgot?a&b'\n\
        pages.name = 'Photos & More'";
    let proxy = with_files(&api, &[], config).start();
    let (consumer, user) = (proxy.consumer("Shop"), proxy.user("ada"));
    let mut visitor = Visitor::to(&proxy);
    let token = proxy.request_token(&consumer, "oob");
    let login = visitor.open(&authorization(&token));
    has(
        &login.answer.text(),
        &[
            "<title>Log in to Photos &#38; More · Photos &#38; More</title>",
            "<h1>Log in to <bdi>Photos &#38; More</bdi></h1>",
            "<a href=\"https://example.com/forgot?a&#38;b\">Forgot your password?</a>",
        ],
    );
    let wrong = visitor.log_in(&login, &User::new("ada", "wrong"));
    has(
        &wrong.answer.text(),
        &["<title>Error: Log in to Photos &#38; More · "],
    );
    let consent = visitor.log_in(&login, &user);
    for page in [login, consent] {
        let text = page.answer.text();
        has(
            &text,
            &["<a href=\"https://example.com/terms?a=1&#38;b=%222%22\">Terms of use</a>"],
        );
        has(
            &text,
            &["<a href=\"https://example.com/privacy\">Privacy</a>"],
        );
    }
}

#[test]
fn consent_page_shows_the_consumers_description_and_web_page() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let user = proxy.user("ada");
    let consent = |consumer: &crate::support::Consumer| {
        let token = proxy.request_token(consumer, "oob");
        proxy.consent(&token, &user).1.answer.text()
    };
    let printer = proxy.consumer_with("Printer", "--website https://printer.example/?a=1&b");
    let told = ["--description", "Prints <photos> & posters."];
    let update = ["consumer", "update", &printer.key];
    proxy.command(&[&update[..], &told].concat()).done();
    let text = consent(&printer);
    has(
        &text,
        &["<q><bdi>Prints &#60;photos&#62; &#38; posters.</bdi></q>"],
    );
    // The link shows only the host.
    has(
        &text,
        &[
            "<a href=\"https://printer.example/?a=1&#38;b\"",
            "<bdi class=\"host\" dir=\"ltr\">printer.example</bdi></a>",
        ],
    );
    assert!(!consent(&proxy.consumer("Plain")).contains("noreferrer"));
    let refused = "consumer add --name x --website javascript:alert(1)";
    let refused = proxy.command(&refused.split(' ').collect::<Vec<_>>());
    assert_eq!(refused.code(), Some(2), "{refused:?}");
}
