//! The pictures of the documents: pages of the running program in a real browser, with a clock that begins at a fixed time.
//!
//! `tests/pictures` writes the pictures and, beside them, a digest of the page that each one shows. The test compares the
//! digests: a page that changed needs a new picture.

use std::{collections::BTreeMap, fs};

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::file;
use crate::support::{
    Call, Caller, Consumer, Proxy, Token, Upstream, User, browser::Browser, faketime,
    legs::authorization, now, operator::WRITE,
};

/// The directory of the pictures, and the file of the digests in it.
const PICTURES: &str = "docs/pictures";
const DIGESTS: &str = "docs/pictures/pages.sha256";
/// The most bytes of a picture.
const MAX_PICTURE: u64 = 120 << 10;
/// Noon in UTC, at which the calls begin. The program starts 50 s before, so that it is ready for a while: with a clock that
/// jumps by more it would have to record first how far nonces are accepted.
const START: u64 = 1_790_164_800;
const BEFORE_NOON: &str = "@2026-09-23 11:59:10";
const NOON: &str = "@2026-09-23 12:00:00";
/// Width and height of the window.
const WIDE: (u32, u32) = (1180, 720);
const FORM: (u32, u32) = (1180, 1080);
const CONSENT: (u32, u32) = (480, 1020);
const PHONE: (u32, u32) = (390, 844);

const CONFIG: &str = "
pages.name = 'Example Photos'
tokens.access_ttl = '90d'

[[permission]]
name = 'photos.read'
title = 'See your photos'
description = 'All albums, also those that you do not share.'

[[permission]]
name = 'photos.order'
title = 'Order prints'
sensitive = true

[[operation]]
path = '/photos/{id}'
permission = 'photos.read'
";

/// The consumers: key, name, what is wrong with their calls, and how many of them are sent.
const CONSUMERS: [(&str, &str, Mistake, usize); 4] = [
    ("printer", "Photo printer", Mistake::None, 60),
    ("wall-calendar", "Wall calendar", Mistake::QueryUnsigned, 9),
    ("frame-tv", "Frame TV", Mistake::SecretsSwapped, 6),
    ("backup-box", "Backup box", Mistake::ClockBehind, 3),
];

#[derive(Debug, Clone, Copy)]
enum Mistake {
    None,
    QueryUnsigned,
    SecretsSwapped,
    ClockBehind,
}

/// The program with its made-up consumers and their calls.
struct Stage {
    proxy: Proxy,
    _api: Upstream,
    printer: Consumer,
}

impl Stage {
    fn set() -> Self {
        let api = Upstream::start();
        let begun = now();
        let builder = Proxy::in_front_of(&api);
        let clock = builder.directory().join("clock");
        fs::write(&clock, BEFORE_NOON).unwrap();
        let builder = builder
            .config(CONFIG)
            .environment("LD_PRELOAD", &faketime().display().to_string())
            .environment("FAKETIME_TIMESTAMP_FILE", &clock.display().to_string())
            .environment("FAKETIME_NO_CACHE", "1")
            .environment("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .environment("NO_FAKE_STAT", "1")
            .environment("TZ", "UTC");
        let proxy = builder.with_console().start();
        proxy.command_with(&["import", "-"], &records()).done();
        // Atomically: the program may be reading it.
        let noon = clock.with_extension("new");
        fs::write(&noon, NOON).unwrap();
        fs::rename(noon, clock).unwrap();
        let callers = CONSUMERS.map(|(key, _, mistake, calls)| {
            let caller = Caller {
                consumer: Consumer::new(key, format!("secret of {key}")),
                user: User::new("ada", ""),
                token: Token::new(format!("{key}-token"), format!("token secret of {key}")),
            };
            for _ in 0..calls {
                let time = START + (now() - begun);
                proxy.send(call(&caller, mistake, time));
            }
            caller
        });
        let [printer, ..] = callers.map(|caller| caller.consumer);
        Self {
            proxy,
            _api: api,
            printer,
        }
    }
}

/// The records, as `import` reads them.
fn records() -> String {
    let registered = "2026-03-02T08:30:00Z";
    let permissions = ["photos.read", "photos.order"];
    let ada = json!({"kind": "user", "id": "4711", "name": "ada", "display_name": "Ada Lovelace", "created_at": registered});
    let mut records = vec![json!({"kind": "export", "version": 1}), ada];
    for (key, name, ..) in CONSUMERS {
        records.push(json!({
            "kind": "consumer", "key": key, "secret": format!("secret of {key}"), "name": name, "permissions": permissions,
            "callbacks": [format!("https://{key}.example/ready")], "created_at": registered,
        }));
        records.push(json!({
            "kind": "token", "token": format!("{key}-token"), "token_secret": format!("token secret of {key}"),
            "consumer": key, "user": "4711", "permissions": permissions, "issued_at": registered,
        }));
    }
    let lines = Vec::from_iter(records.iter().map(ToString::to_string));
    lines.join("\n") + "\n"
}

fn call(caller: &Caller, mistake: Mistake, time: u64) -> Call {
    let call = Call::get("/photos/7?size=large");
    let (time, call) = match mistake {
        Mistake::None => (time, call.of(caller)),
        Mistake::QueryUnsigned => (time, call.of(caller).signs_target("/photos/7")),
        Mistake::SecretsSwapped => {
            let consumer = Consumer::new(&caller.consumer.key, &caller.token.secret);
            let mut token = caller.token.clone();
            token.secret.clone_from(&caller.consumer.secret);
            (time, call.by(&consumer).with(&token))
        }
        Mistake::ClockBehind => (time - 742, call.of(caller)),
    };
    call.parameter("oauth_timestamp", &time.to_string())
}

/// Opens each page and shows it, in windows of these sizes.
fn visit(stage: &Stage, mut show: impl FnMut(&str, (u32, u32), &Browser)) {
    let proxy = &stage.proxy;
    let browser = Browser::start();
    let console = format!("http://{}", proxy.admin());
    browser.open(&console);
    browser.fill("#token", WRITE);
    browser.click("button.main");
    browser.text("nav a[aria-current]");
    show("overview", WIDE, &browser);
    show("overview-phone", PHONE, &browser);
    browser.click("main a[href*='consumer?key=wall-calendar']");
    browser.text("main h2");
    show("consumer", WIDE, &browser);
    show("consumer-phone", PHONE, &browser);
    browser.click("nav a[href='/rejections']");
    browser.text("nav a[href='/rejections'][aria-current]");
    show("rejections", WIDE, &browser);
    browser.click("nav a[href='/consumers']");
    browser.click("main a[href='/consumer/add']");
    browser.text("fieldset");
    show("register", FORM, &browser);

    // She has not allowed the printer before.
    let grace = proxy.user("grace");
    let ask = |later: u64| {
        let ask = Call::post("/oauth/request_token")
            .by(&stage.printer)
            .parameter("oauth_timestamp", &(START + later).to_string())
            .parameter("oauth_callback", "https://printer.example/ready");
        let request = crate::support::legs::token_of(&proxy.served(ask));
        format!("{}{}", proxy.origin(), authorization(&request))
    };
    browser.open(&ask(1));
    browser.log_in(&grace);
    browser.text("button[name=decision]");
    show("consent", CONSENT, &browser);
    // She has allowed it one of the two permissions.
    let earlier = json!({
        "kind": "token", "token": "earlier-token", "token_secret": "secret of an earlier token", "began": "consent",
        "consumer": "printer", "user": grace.id, "permissions": ["photos.read"], "issued_at": "2026-05-04T09:12:00Z",
    });
    let file = format!("{}\n{earlier}\n", json!({"kind": "export", "version": 1}));
    proxy.command_with(&["import", "-"], &file).done();
    browser.open(&ask(2));
    browser.text(".badge");
    show("consent-new", CONSENT, &browser);
}

/// The last height up to this one at which no row, line or field is cut.
fn end_of_row(browser: &Browser, height: u32) -> u32 {
    let ends = "return Array.from(document.querySelectorAll('tbody tr, main > p, main li, main form > div, figure, fieldset, .choice, dl > div'))
        .map(it => it.getBoundingClientRect()).filter(it => it.height > 0)";
    let script = format!(
        "{ends}.map(it => it.bottom).filter(it => it <= {height} - 4).reduce((one, next) => Math.max(one, Math.ceil(next)), 0)"
    );
    let end = browser.script(&script).as_u64().unwrap_or_default();
    // A part of the space after it.
    let end = u32::try_from(end).unwrap() + 4;
    end.min(height)
}

/// A page without what differs each time: numbers, values of forms and links, lines that repeat. Its styles are complete.
fn essence(source: &str) -> String {
    let (styles, rest) = source
        .split_once("</style>")
        .expect("the page has its style inside");
    let rest = rest.split_once("<body").map_or(rest, |(_, body)| body);
    let mut essence = styles.split_once("<style").unwrap().1.to_owned();
    let mut without_values = String::new();
    for (index, part) in rest.split('"').enumerate() {
        // An odd part is the value of an attribute.
        let is_varying = index % 2 == 1 && (part.contains(['?', '=', ':']) || part.len() > 40);
        without_values += if is_varying { "…" } else { part };
        without_values.push('"');
    }
    let mut last = "";
    let numbers = without_values.replace(|it: char| it.is_ascii_digit() || ".,".contains(it), "");
    // The bars follow the traffic, and the ids of requests are random.
    let varying = ["<rect", "data-label=\"address request id\""];
    let lines = numbers.lines();
    for line in lines.filter(|line| !varying.iter().any(|it| line.contains(it))) {
        if line != last {
            essence += line.trim();
            essence.push('\n');
        }
        last = line;
    }
    essence
}

#[test]
fn each_picture_shows_the_page_as_it_is() {
    let is_writing = std::env::var_os("COUNTERSIGN_WRITE_PICTURES").is_some();
    let stage = Stage::set();
    let mut digests = BTreeMap::new();
    visit(&stage, |name, (width, height), browser| {
        let page = essence(&browser.source());
        if let Some(directory) = std::env::var_os("COUNTERSIGN_PAGES") {
            fs::write(std::path::Path::new(&directory).join(name), &page).unwrap();
        }
        let digest = Sha256::digest(page);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        digests.insert(name.to_owned(), digest);
        if is_writing {
            for (scheme, dark) in [("light", false), ("dark", true)] {
                browser.hide_scrollbars();
                browser.emulate_window(width, height, dark);
                browser.emulate_window(width, end_of_row(browser, height), dark);
                let path = format!("{PICTURES}/{name}-{scheme}.png");
                fs::write(file(&path), browser.screenshot()).unwrap();
            }
            // The menu is folded on a phone.
            browser.emulate_window(WIDE.0, WIDE.1, false);
        }
    });
    let text: String = digests
        .iter()
        .map(|(name, digest)| format!("{digest}  {name}\n"))
        .collect();
    if is_writing {
        fs::write(file(DIGESTS), &text).unwrap();
    }
    let expected = fs::read_to_string(file(DIGESTS)).unwrap();
    assert_eq!(
        text, expected,
        "a page changed; tests/pictures makes new pictures"
    );
    for name in digests.keys() {
        for scheme in ["light", "dark"] {
            let picture = file(&format!("{PICTURES}/{name}-{scheme}.png"));
            let size = fs::metadata(&picture).unwrap().len();
            assert!(
                (1..=MAX_PICTURE).contains(&size),
                "{}: {size}",
                picture.display()
            );
        }
    }
}
