//! Attacks on the page by which the developer of a consumer sees its rejected calls: forged and foreign links, markup in
//! everything that is shown, other sites, forms of attackers, guesses, and what the page could tell of others.
//!
//! Promise (Console): A developer's link is valid for 24 hours, until it is revoked, and shows no secret, user or whole token.
//! Also in `src/telemetry/calls/rejections/base_strings.rs`, `tests/store_contract/consumers.rs`.

use crate::support::{
    Answer, Call, Consumer, Operator, Proxy, Token, Upstream, User,
    call::form,
    operator::{READ, WRITE},
    until,
    visitor::Page,
};

/// Marks that a page must never show as markup.
const MARKUP: &str = "<script>alert(1)</script>";

struct Service {
    _api: Upstream,
    proxy: Proxy,
    consumer: Consumer,
    user: User,
    token: Token,
    /// Path and query of the link.
    link: String,
}

impl Service {
    fn start(config: &str) -> Self {
        let api = Upstream::start();
        let proxy = Proxy::in_front_of(&api)
            .config(config)
            .with_console()
            .start();
        let caller = proxy.caller("Photo printer", "", "ada-lovelace");
        let (consumer, user, token) = caller.into_parts();
        let link = made(&proxy, &consumer);
        Self {
            _api: api,
            proxy,
            consumer,
            user,
            token,
            link,
        }
    }

    fn open(&self, target: &str) -> Answer {
        self.proxy.send(Call::get(target))
    }

    fn text(&self) -> String {
        self.open(&self.link).has_status(200).text()
    }

    /// A call of the consumer whose signature is wrong, and its token.
    fn fails(&self, call: Call) {
        let call = call.by(&self.consumer).with(&self.token);
        self.proxy.send(call.key("wrong&wrong")).has_status(401);
    }

    /// Sends the form of the page, filled in so.
    fn check(&self, fields: &[(&str, &str)]) -> Answer {
        let mut filled = fields_of(&self.link, &self.open(&self.link));
        let fields = fields.iter();
        filled.extend(fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self.post(&filled)
    }

    fn post(&self, fields: &[(String, String)]) -> Answer {
        let call = Call::post(&self.link)
            .header("Origin", &self.proxy.origin())
            .header("Sec-Fetch-Site", "same-origin");
        self.proxy.send(call.form(&form(fields)))
    }
}

/// The hidden fields of the form on the page.
fn fields_of(target: &str, answer: &Answer) -> Vec<(String, String)> {
    let page = Page {
        target: target.to_owned(),
        answer: answer.clone(),
    };
    page.form_with("csrf").fields
}

/// Makes a link by the command, as path and query.
fn made(proxy: &Proxy, consumer: &Consumer) -> String {
    let made = proxy.run(&format!("consumer link {} --json", consumer.key));
    let url = made.json()["url"].as_str().unwrap().to_owned();
    // The command does not know the port that the system gave.
    url[url.find("/service.oauth").unwrap()..].to_owned()
}

/// What a response says of a link that does not work.
fn refusal(answer: &Answer) -> String {
    answer.has_status(404);
    let text = answer.text();
    assert!(text.contains("This link does not work"), "{text}");
    // The number of the request, and the address that is repeated, are the caller's own.
    let lines = text
        .lines()
        .filter(|line| !line.contains("request-id") && !line.contains("mode=developer"));
    Vec::from_iter(lines).join("\n")
}

#[test]
fn every_link_that_is_not_valid_gets_the_same_response() {
    let service = Service::start("");
    let proxy = &service.proxy;
    let (path, value) = service.link.split_once("&link=").unwrap();
    let [other, ended, disabled, removed, replaced] =
        ["Other", "Ended", "Disabled", "Removed", "Replaced"].map(|name| proxy.consumer(name));
    let [ended_link, disabled_link, removed_link, replaced_link] =
        [&ended, &disabled, &removed, &replaced].map(|consumer| made(proxy, consumer));
    for link in [&ended_link, &disabled_link, &removed_link, &replaced_link] {
        service.open(link).has_status(200);
    }
    proxy.run(&format!("consumer link {} --revoke", ended.key));
    proxy.run(&format!("consumer disable {}", disabled.key));
    proxy.run(&format!("consumer remove {} --yes", removed.key));
    made(proxy, &replaced);
    let expected = refusal(&service.open(&format!("{path}&link={}", "a".repeat(43))));
    let last = value.chars().last().unwrap();
    let altered = match last {
        'a' => 'b',
        _ => 'a',
    };
    let short = &value[..42];
    for link in [
        ended_link,
        disabled_link.clone(),
        removed_link,
        replaced_link,
        path.to_owned(),
        format!("{path}&link="),
        format!("{path}&link={short}"),
        format!("{path}&link={short}{altered}"),
        format!("{path}&link={value}a"),
        format!("{path}&link={}", other.key),
        format!("{path}&link={}", service.consumer.key),
        format!("{path}&link={}", service.consumer.secret),
        format!("{path}&link={short}%00"),
        format!("{path}&link=%3Cscript%3E"),
        format!("{path}&consumer={}", other.key),
        format!("{path}&link={short}{altered}&collection=postman"),
    ] {
        assert_eq!(refusal(&service.open(&link)), expected, "{link}");
    }
    // Too long for the links to other languages.
    refusal(&service.open(&format!("{path}&link={}", "a".repeat(4_000))));
    // A consumer is not named by the address.
    let more = format!("{}&consumer={}&key={}", service.link, other.key, other.key);
    let text = service.open(&more).has_status(200).text();
    assert!(
        text.contains("Photo printer") && !text.contains(&other.key),
        "{text}"
    );
    // It is not valid twice.
    service
        .open(&format!("{}&link={value}", service.link))
        .has_status(400);
    // Enabled again, the consumer has no link.
    proxy.run(&format!("consumer enable {}", disabled.key));
    assert_eq!(refusal(&service.open(&disabled_link)), expected);
}

#[test]
fn a_link_ends_after_a_day() {
    let service = Service::start("");
    service.open(&service.link).has_status(200);
    let store = service.proxy.directory().join("countersign.db");
    let store = rusqlite::Connection::open(store).unwrap();
    let left = "SELECT expires_at - unixepoch() FROM developer_links";
    let left: i64 = store.query_row(left, [], |row| row.get(0)).unwrap();
    assert!((86_340..=86_400).contains(&left), "{left}");
    store
        .execute("UPDATE developer_links SET expires_at = unixepoch()", [])
        .unwrap();
    refusal(&service.open(&service.link));
    // Nothing opens it from what the store has.
    let hash: Vec<u8> = store
        .query_row("SELECT id_hash FROM developer_links", [], |row| row.get(0))
        .unwrap();
    assert_eq!(hash.len(), 32);
    let value = service.link.split_once("&link=").unwrap().1;
    assert!(
        !hash
            .windows(8)
            .any(|part| value.as_bytes().windows(8).any(|it| it == part))
    );
}

#[test]
fn a_link_outlives_a_restart_and_no_log_has_it() {
    let mut service = Service::start("");
    let value = service.link.split_once("&link=").unwrap().1.to_owned();
    service.open(&service.link).has_status(200);
    service.check(&[("request", "GET / HTTP/1.1")]);
    service.proxy.stop();
    service.proxy.start();
    service.open(&service.link).has_status(200);
    until("the access line", || {
        service
            .proxy
            .logged(&["verdict=\"page\"", "path=\"/service.oauth\""])
            > 0
    });
    assert_eq!(service.proxy.logged(&[&value[..16]]), 0);
    assert_eq!(service.proxy.logged(&["mode=developer"]), 0);
}

#[test]
fn the_page_is_neither_kept_nor_framed_nor_named_to_others() {
    let service = Service::start("");
    for answer in [
        service.open(&service.link),
        service.check(&[("request", "x")]),
    ] {
        let policy = answer.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        for (name, value) in [
            ("cache-control", "no-store"),
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
            // No Referer has more than the origin.
            ("referrer-policy", "strict-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{name}");
        }
        assert_eq!(answer.header("set-cookie"), None);
        let text = answer.text();
        assert!(
            text.contains("noindex") && !text.contains("<script"),
            "{text}"
        );
    }
}

#[test]
fn it_shows_no_secret_no_user_and_nothing_of_others() {
    let service = Service::start("");
    let other = service.proxy.consumer("Wall calendar");
    let foreign = service.proxy.token(&other, &service.user);
    let call = Call::get("/members/ada-lovelace?name=ada-lovelace&password=hunter22");
    service.fails(call);
    let call = Call::get("/orders/4711").by(&other).with(&foreign);
    service.proxy.send(call.key("wrong&wrong")).has_status(401);
    let text = service.text();
    for shown in [
        "Signature wrong",
        "Right base string",
        "GET&#38;",
        // Names are shown, and no values.
        "name%3Dxxx-xxxxxxxx",
        "%26password%3Dxxxxxxxx",
        &service.token.token[..8],
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    for hidden in [
        "ada-lovelace",
        "hunter22",
        "Wall calendar",
        "4711",
        &*other.key,
        &foreign.token[..8],
        // Of what is masked one or two letters may be x by chance.
        &service.token.token[..16],
        &service.token.secret,
        &service.consumer.secret,
    ] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
}

#[test]
fn nothing_that_it_shows_is_markup() {
    let service = Service::start("");
    let (proxy, key) = (&service.proxy, &service.consumer.key);
    let name = format!("</title>{MARKUP}\"'><b>");
    proxy.command(&["consumer", "update", key, "--name", &name]);
    let escaped = "%3Cscript%3Ealert(1)%3C/script%3E";
    for call in [
        Call::get(&format!("/a?{escaped}={escaped}&%22onload%3D=1")),
        Call::new("X<B>", "/"),
        Call::get("/").header("X-Request-Id", MARKUP),
        Call::get("/").header("User-Agent", MARKUP),
        Call::get("/").header("Accept-Language", MARKUP),
    ] {
        let call = call.by(&service.consumer).with(&service.token);
        proxy.send(call.key("wrong&wrong"));
    }
    let language = format!("{}&ui_locales={escaped}", service.link);
    let request =
        format!("GET /{MARKUP}?<b>=1&\"=' HTTP/1.1\nHost: {MARKUP}\nAuthorization: OAuth {MARKUP}");
    for text in [
        service.text(),
        service.open(&language).text(),
        service
            .open(&format!("{}&return_to={escaped}", service.link))
            .text(),
        service
            .check(&[("request", &request), ("signed", MARKUP)])
            .text(),
        service
            .check(&[("signed", &format!("GET&http://a/{MARKUP}&{MARKUP}"))])
            .text(),
        service
            .check(&[("request", &format!("curl 'http://a/{MARKUP}'"))])
            .text(),
        service.check(&[("request", "</textarea><b>")]).text(),
    ] {
        for markup in ["<script", "<b>", "\"onload"] {
            assert!(!text.to_lowercase().contains(markup), "{markup}: {text}");
        }
        assert_eq!(text.matches("</title>").count(), 1, "{text}");
        assert_eq!(text.matches("</textarea>").count(), 2, "{text}");
    }
}

#[test]
fn languages_are_chosen_from_those_that_there_are() {
    let service = Service::start("");
    for (tag, title) in [
        ("de", "Abgelehnte Aufrufe von"),
        ("ja", "の拒否された呼び出し"),
        ("ar", "الاستدعاءات المرفوضة من"),
        ("xx", "Rejected calls of"),
        ("../../etc/passwd", "Rejected calls of"),
        ("%0d%0aSet-Cookie:%20a=b", "Rejected calls of"),
    ] {
        let answer = service.open(&format!("{}&ui_locales={tag}", service.link));
        assert!(answer.has_status(200).text().contains(title), "{tag}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    // The links to other languages keep the link.
    let value = service.link.split_once("&link=").unwrap().1;
    let kept = format!("link={value}&amp;ui_locales=de");
    let text = service.text().replace("&#38;", "&amp;");
    assert!(text.contains(&kept), "{text}");
}

#[test]
fn no_form_but_its_own_is_read() {
    let service = Service::start("");
    let fields = [(
        "request".to_owned(),
        "GET / HTTP/1.1\nHost: a.example".to_owned(),
    )];
    let form_of = |link: &str| [fields_of(link, &service.open(link)), fields.to_vec()].concat();
    let own = form_of(&service.link);
    service.post(&own).has_status(200);
    // Without the value, with another one, and with that of another consumer's page.
    service.post(&fields).has_status(403);
    let with = |csrf: &str| [&fields[..], &[("csrf".to_owned(), csrf.to_owned())]].concat();
    service.post(&with("")).has_status(403);
    service.post(&with(&"A".repeat(43))).has_status(403);
    let other = made(&service.proxy, &service.proxy.consumer("Other"));
    let others = form_of(&other);
    service.post(&others).has_status(403);
    for (name, value) in [
        ("Origin", "https://evil.test"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        let call = Call::post(&service.link).header(name, value);
        service.proxy.send(call.form(&form(&own))).has_status(403);
    }
    for method in ["PUT", "DELETE", "PATCH"] {
        let answer = service.proxy.send(Call::new(method, &service.link));
        answer.has_status(405);
    }
    // It reads no mode and no second field.
    let call = |body: &str| {
        let call = Call::post(&service.link).header("Origin", &service.proxy.origin());
        service.proxy.send(call.form(body))
    };
    call(&format!("{}&mode=login", form(&own))).has_status(400);
    call(&format!("{}&request=x", form(&own))).has_status(400);
    call("request=%ff").has_status(400);
}

#[test]
fn a_request_of_another_consumer_is_not_checked() {
    let service = Service::start("");
    let (proxy, origin) = (&service.proxy, service.proxy.origin());
    let other = proxy.consumer("Other");
    let foreign = proxy.token(&other, &service.user);
    let pasted = |call: Call| {
        let wire = String::from_utf8(proxy.wire(&call)).unwrap();
        wire.replacen(" /", &format!(" {origin}/"), 1)
    };
    let own = Call::get("/a?b=1")
        .by(&service.consumer)
        .with(&service.token);
    let text = service.check(&[("request", &pasted(own))]).text();
    assert!(text.contains("The signature is right."), "{text}");
    // A right one and a wrong one look alike.
    for key in [None, Some("wrong&wrong")] {
        let call = Call::get("/a").by(&other).with(&foreign);
        let call = match key {
            Some(key) => call.key(key),
            None => call,
        };
        let text = service.check(&[("request", &pasted(call))]).text();
        assert!(
            text.contains("This request names another consumer."),
            "{text}"
        );
        assert!(!text.contains("Right base string"), "{text}");
    }
    // Two consumers at once are none.
    let call = Call::get(&format!("/a?oauth_consumer_key={}", other.key));
    let call = call.by(&service.consumer).with(&service.token);
    let text = service.check(&[("request", &pasted(call))]).text();
    assert!(!text.contains("The signature is right."), "{text}");
}

/// The page without what belongs to the caller's own request.
fn without_own(text: &str, own: &[&str]) -> String {
    let mut text = text.to_owned();
    for value in own {
        text = text.replace(value, "OWN");
    }
    let lines = text.lines().filter(|line| !line.contains("request-id"));
    Vec::from_iter(lines).join("\n")
}

#[test]
fn existing_token_looks_unknown_without_the_secrets() {
    let mut service = Service::start(
        "[[operation]]\npath = '/narrow'\naccess = ['user']\ntimestamp_window = '60s'\n",
    );
    let store = service.proxy.directory().join("countersign.db");
    let store = rusqlite::Connection::open(store).unwrap();
    let expire = "UPDATE access_tokens SET expires_at = unixepoch() - 10 WHERE token = ?1";
    let other = service.proxy.consumer("Other");
    let foreign = service.proxy.token(&other, &service.user);
    let unknown = Token::new("0".repeat(foreign.token.len()), "secret");
    let hour_ago = crate::support::now() - 3_600;
    // The key that signs, from the secret of the consumer; the path, and whether the request is an hour old.
    for (key, path, is_old) in [
        ("wrong&wrong", "/a?b=1", false),
        ("wrong&wrong", "/narrow", true),
        ("SECRET&wrong", "/narrow", true),
        // The mistake is found without the token.
        ("SECRET&", "/a", false),
    ] {
        // Another one, since the checks of each are limited.
        service.consumer = service.proxy.consumer("Photo printer");
        service.link = made(&service.proxy, &service.consumer);
        let (proxy, consumer) = (&service.proxy, &service.consumer);
        let [valid, revoked, expired] = [(); 3].map(|()| proxy.token(consumer, &service.user));
        proxy.run(&format!("token revoke {}", revoked.token));
        assert_eq!(store.execute(expire, [&expired.token]).unwrap(), 1);
        let key = key.replace("SECRET", &consumer.secret);
        let time = if is_old {
            hour_ago
        } else {
            crate::support::now()
        };
        let checked = |token: &Token, key: Option<&str>| {
            let call = Call::post(path).by(consumer).with(token);
            let call = call.parameter("oauth_timestamp", &time.to_string());
            let mut call = call.parameter("oauth_nonce", "n");
            if let Some(key) = key {
                call = call.key(key);
            }
            let wire = String::from_utf8(proxy.wire(&call)).unwrap();
            let request = wire.replacen(" /", &format!(" {}/", proxy.origin()), 1);
            let signature = request.split("oauth_signature=\"").nth(1).unwrap();
            let signature = signature.split('"').next().unwrap().to_owned();
            let text = service
                .check(&[("request", &request)])
                .has_status(200)
                .text();
            without_own(&text, &[&token.token, &signature])
        };
        let expected = checked(&unknown, Some(&key));
        let finding = match key.ends_with('&') {
            true => "token_secret_missing",
            false => "no known mistake makes it",
        };
        assert!(expected.contains(finding), "{key}: {expected}");
        for token in [&valid, &revoked, &expired, &foreign] {
            assert_eq!(checked(token, Some(&key)), expected, "{path} {key}");
        }
        // Whoever has the secrets is told, also after a mistake with both.
        let swapped = format!("{}&{}", revoked.secret, consumer.secret);
        for key in [None, Some(&*swapped)] {
            let text = checked(&revoked, key);
            assert!(text.contains("token_revoked"), "{key:?}: {text}");
        }
    }
}

#[test]
fn a_guess_of_a_secret_comes_back_like_any_other_value() {
    let service = Service::start("");
    let (consumer, token) = (&service.consumer, &service.token);
    let request = format!(
        "GET /x?a={}&b={}&c=guess HTTP/1.1\r\nHost: api.example\r\nAuthorization: OAuth oauth_consumer_key=\"{}\", \
         oauth_token=\"{}\", oauth_signature_method=\"HMAC-SHA1\", oauth_timestamp=\"{}\", oauth_nonce=\"n\", \
         oauth_signature=\"x\"\r\n\r\n",
        consumer.secret,
        token.secret,
        consumer.key,
        token.token,
        crate::support::now(),
    );
    let text = service.check(&[("request", &request)]).text();
    for (name, value) in [
        ("a", &*consumer.secret),
        ("b", &*token.secret),
        ("c", "guess"),
    ] {
        let shown = format!("{name}%3D{value}");
        assert!(text.contains(&shown), "{shown}: {text}");
    }
    assert!(!text.contains("secret&#62;"), "{text}");
}

#[test]
fn a_base_string_alone_is_compared_with_its_right_form() {
    let service = Service::start("");
    for (signed, message) in [
        (
            "GET&http%3A%2F%2Fa.example%2Fr&a%3D1%26b%3D2",
            "The base string is well-formed.",
        ),
        (
            "GET&http%3A%2F%2Fa.example%2Fr&b%3D2%26a%3D1",
            "The base string is not well-formed.",
        ),
        ("nonsense", "This cannot be read."),
        (" ", "Paste a request or a base string."),
    ] {
        let text = service.check(&[("signed", signed)]).text();
        assert!(text.contains(message), "{signed}: {text}");
    }
}

#[test]
fn huge_input_is_not_read_and_long_input_is_bounded() {
    let service = Service::start("");
    let text = service.check(&[("request", &"&=%".repeat(100_000))]);
    text.has_status(413);
    let long = format!("GET /?{} HTTP/1.1\nHost: a.example", "a=1&".repeat(1_500));
    service.check(&[("request", &long)]).has_status(200);
    let many = "&".repeat(4_000);
    service
        .check(&[("signed", &many), ("request", "")])
        .has_status(200);
}

#[test]
fn pages_and_checks_are_limited_for_each_consumer() {
    let service = Service::start("");
    let mut checked = 0;
    let refused = loop {
        let answer = service.check(&[("signed", "x")]);
        if answer.status == 429 {
            break answer;
        }
        answer.has_status(200);
        checked += 1;
        assert!(checked <= 20, "checks have no limit");
    };
    assert!(checked >= 10, "{checked}");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert!(refused.text().contains("Too many requests"), "{refused:?}");
    // Pages are still shown, for a while.
    service.open(&service.link).has_status(200);
    let refused = (0..100).map(|_| service.open(&service.link).status);
    assert!(Vec::from_iter(refused).contains(&429));
    // Another consumer's is not used up.
    let other = made(&service.proxy, &service.proxy.consumer("Other"));
    service.open(&other).has_status(200);
}

#[test]
fn link_ends_with_the_grace_of_its_secret() {
    for end in ["", " --end-grace"] {
        let service = Service::start("");
        let rotate = format!("consumer rotate-secret {}", service.consumer.key);
        service.proxy.run(&format!("{rotate} --grace 1h"));
        service.open(&service.link).has_status(200);
        service.proxy.run(&format!("{rotate}{end}"));
        refusal(&service.open(&service.link));
    }
}

#[test]
fn links_that_are_not_valid_are_limited_for_each_address() {
    let service = Service::start("");
    let path = service.link.split_once("&link=").unwrap().0;
    let unknown = format!("{path}&link={}", "a".repeat(43));
    let mut tries = 0;
    let refused = loop {
        let answer = service.open(&unknown);
        if answer.status == 429 {
            break answer;
        }
        refusal(&answer);
        tries += 1;
        assert!(tries <= 60, "unknown links have no limit");
    };
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    // A valid one looks the same then, and other pages are not limited.
    service.open(&service.link).has_status(429);
    let login = service.proxy.send(Call::get("/service.oauth?mode=login"));
    assert_ne!(login.status, 429, "{login:?}");
}

#[test]
fn without_advice_there_is_no_page_and_no_link() {
    let service = Service::start("");
    let Service {
        mut proxy,
        link,
        consumer,
        ..
    } = service;
    proxy.reload("signature.advice = 'off'");
    until("the page is off", || {
        proxy.send(Call::get(&link)).status == 404
    });
    refusal(&proxy.send(Call::get(&link)));
    let ended = proxy.command(&["consumer", "link", &consumer.key]);
    assert!(
        ended.stderr.contains("signature.advice is off"),
        "{ended:?}"
    );
}

#[test]
fn only_an_operator_who_may_change_makes_and_ends_a_link() {
    let service = Service::start("");
    let (proxy, key) = (&service.proxy, &service.consumer.key);
    let reader = Operator::with(proxy, READ);
    for page in ["link", "end-link"] {
        let target = format!("/consumer/{page}?key={key}");
        reader.open(&target).answer.has_status(403);
    }
    let writer = Operator::with(proxy, WRITE);
    let page = writer.open(&format!("/consumer/link?key={key}"));
    // The page that asks makes nothing.
    service.open(&service.link).has_status(200);
    let made = writer.confirm(&page).answer;
    let text = made.has_status(200).text();
    let begin = text.find(&proxy.origin()).unwrap() + proxy.origin().len();
    let link = text[begin..]
        .split('<')
        .next()
        .unwrap()
        .replace("&amp;", "&")
        .replace("&#38;", "&");
    service.open(&link).has_status(200);
    refusal(&service.open(&service.link));
    let shown = writer.text(&format!("/consumer?key={key}"));
    assert!(shown.contains("Its developer has a link"), "{shown}");
    let page = writer.open(&format!("/consumer/end-link?key={key}"));
    writer.confirm(&page);
    refusal(&service.open(&link));
    let audit = writer.text(&format!("/audit?consumer={key}"));
    for act in ["Developer link made", "Developer link revoked"] {
        assert!(audit.contains(act), "{act}: {audit}");
    }
    let value = link.split_once("&link=").unwrap().1;
    assert!(!audit.contains(&value[..8]), "{audit}");
}
