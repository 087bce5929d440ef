//! A launch that a browser posts for its user and that fails ends on a page for the user, which only the named sites may frame,
//! or, under a right signature, at the platform; it never leads to another address.
//!
//! Promise (Permissions and identity): A failed launch ends on one page, or at an address on a named site that a right
//! signature covers. Also in `tests/deploy/lti.rs`, `src/request/policy/operations/frame_ancestors.rs`.

use crate::support::{
    Answer, Call, Placement, Proxy, Reply, Scene, Upstream, Visitor,
    gate::Way,
    has,
    legs::LOGIN,
    now,
    proxy::Consumer,
    signer::{encode, form_pairs},
    text::words,
    until,
};

/// The platform may frame a failure of `/launch`; no site may frame one of `/window`.
const LAUNCHES: &str = "
    [[operation]]
    path = '/launch'
    access = ['application']
    launch = true
    framed_by = ['https://lms.example', 'https://*.lms.test:8443', 'http://127.0.0.1:9']

    [[operation]]
    path = '/window'
    access = ['application']
    launch = true

    [[operation]]
    path = '/outcomes'
    access = ['application']
";

const RETURN: &str = "https://lms.example/return?course=7";

/// A launch of this form, signed as platforms sign it.
fn signed(target: &str, consumer: &Consumer, form: &str) -> Call {
    let call = Call::post(target).form(form).by(consumer);
    call.placed(Placement::Body)
}

/// The same as a browser posts it in a frame.
fn in_browser(call: Call) -> Call {
    call.header(
        "Accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    )
    .header("Accept-Language", "en-GB,en;q=0.9")
    .header("Origin", "https://lms.example")
    .header("Sec-Fetch-Site", "cross-site")
    .header("Sec-Fetch-Mode", "navigate")
    .header("Sec-Fetch-Dest", "iframe")
}

fn launch(consumer: &Consumer, form: &str) -> Call {
    in_browser(signed("/launch", consumer, form))
}

fn with_return(url: &str) -> String {
    format!("user_id=7&launch_presentation_return_url={}", encode(url))
}

/// The same request twice; the second response.
#[track_caller]
fn twice(proxy: &Proxy, call: &Call) -> Answer {
    let wire = proxy.wire(call);
    let [first, again] = [(); 2].map(|()| {
        let mut connection = proxy.connect();
        connection.send(&wire);
        connection.answer("POST")
    });
    first.has_status(200);
    again
}

/// The sources of `frame-ancestors`.
fn ancestors(answer: &Answer) -> &str {
    let policy = answer.header("content-security-policy").unwrap();
    let sources = policy.split("frame-ancestors ").nth(1).unwrap();
    sources.split(';').next().unwrap()
}

/// Checks that it is the page of a failed launch that the platform may frame, and returns it.
#[track_caller]
fn is_page(answer: &Answer, status: u16) -> String {
    answer.has_status(status);
    let text = answer.text();
    let id = answer.header("x-request-id").unwrap();
    has(
        &text,
        &[
            "<h1>The activity did not open</h1>",
            "pen it again from your course.",
            &format!("<bdi id=\"request-id\">{id}</bdi>"),
            "<details class=\"small\"><summary>For the administrator</summary>",
        ],
    );
    assert_eq!(
        ancestors(answer),
        "https://lms.example https://*.lms.test:8443 http://127.0.0.1:9"
    );
    assert!(!answer.fields.has("x-frame-options"), "{answer:?}");
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(answer.header(name), Some(value));
    }
    assert!(!answer.fields.has("location"), "{answer:?}");
    text
}

/// Where a failed launch ends: on its page with this status, or at an address that begins like this.
#[derive(Clone, Copy)]
enum End<'a> {
    Page(u16),
    Platform(&'a str),
}

/// Checks that the platform gets the reason, and no secret.
#[track_caller]
fn is_back(answer: &Answer, begin: &str, problem: &str, secrets: &[&str]) {
    answer.has_status(303);
    let location = answer.header("location").unwrap();
    let rest = location.strip_prefix(begin);
    let rest = rest.unwrap_or_else(|| panic!("{location} does not begin with {begin}"));
    let pairs = form_pairs(rest.as_bytes());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let names = Vec::from_iter(pairs.iter().map(|(name, _)| text(name)));
    assert_eq!(names, ["lti_errormsg", "lti_errorlog"]);
    let (message, log) = (text(&pairs[0].1), text(&pairs[1].1));
    let id = answer.header("x-request-id").unwrap();
    let advice = "The activity did not open. Open it again from your course.";
    has(&message, &[advice, id]);
    has(&log, &[id]);
    assert!(log.starts_with(&format!("{problem}: ")), "{log}");
    for secret in secrets.iter().chain(&["oauth_signature"]) {
        assert!(!location.contains(secret), "{location}");
    }
    let is_bare = answer.body.is_empty() && !answer.fields.has("x-frame-options");
    assert!(is_bare, "{answer:?}");
}

/// Return addresses on a site that may frame the launch, and the beginning of where it leads back.
const ON_SITE: [(&str, &str); 8] = [
    ("https://lms.example", "https://lms.example?"),
    ("https://LMS.example/", "https://LMS.example/?"),
    ("https://lms.example:443/r?", "https://lms.example:443/r?"),
    ("https://lms.example/r?a=b&", "https://lms.example/r?a=b&"),
    (
        "https://lms.example/r?a=1&a=%C3%A9",
        "https://lms.example/r?a=1&a=%C3%A9&",
    ),
    (
        "https://lms.example/?u=http://evil.example/@x",
        "https://lms.example/?u=http://evil.example/@x&",
    ),
    (
        "https://a.b.lms.test:8443/r",
        "https://a.b.lms.test:8443/r?",
    ),
    ("http://127.0.0.1:9/r", "http://127.0.0.1:9/r?"),
];

/// Return addresses on no such site.
const OFF_SITE: &str = r"
    https://evil.example/ http://lms.example/ https://lms.example:444/ https://lms.example.evil.example/
    https://evillms.example/ https://sub.lms.example/ https://lms.test:8443/ https://a.lms.test/ https://evillms.test:8443/
    https://lms.example@evil.example/ https://evil.example@lms.example/ https://lms.example:pass@evil.example/
    https://evil.example\@lms.example/ https://evil.example#@lms.example/ https://evil.example?@lms.example/
    https://lms.example\evil.example/ https://lms.example%2eevil.example/ https://evil%2eexample/ https://lms%2Eexample/
    https://lms.example%00.evil.example/ https://lms.example%40evil.example/ https://lms。example/ https://ｌms.example/
    https://lms.example./ https:lms.example/ https:/lms.example/ https:///lms.example/ //lms.example/ /\evil.example/
    lms.example https://lms.example/#fragment https://lms.example/a/../b https://lms.example/%zz https://lms.example:0443/
    https://lms.example:/ javascript://lms.example/%0aalert(1) javascript:alert(1)//https://lms.example/
    data:text/html,https://lms.example/ ftp://lms.example/ http://0x7f.1:9/ http://2130706433:9/ http://[::ffff:127.0.0.1]:9/
";

const OFF_SITE_WITH_SPACE: [&str; 5] = [
    "",
    " https://lms.example/",
    "https://lms.example /",
    "https://lms.example/\r\nSet-Cookie: a=b",
    "https://lms.example/\tx",
];

#[test]
fn failed_launch_ends_on_its_page_or_at_its_platform() {
    use End::{Page, Platform};
    let config = format!(
        "permission = [{{ name = 'tools' }}]\n{LAUNCHES}\n[[operation]]\npath = '/secret'\naccess = ['application']\n\
         permission = 'tools'\nlaunch = true\nframed_by = 'https://lms.example'"
    );
    let (api, proxy, caller) = Scene::with(&config).into_parts();
    let consumer = &caller.consumer;
    let disabled = &proxy.consumer("Disabled");
    proxy.run(&format!("consumer disable {}", disabled.key));
    let school = &proxy.consumer_with("School", "--pinned context_id=7");
    let certificate = crate::support::installed("../src/oauth/method/rsa/testdata/spki.pem");
    let rsa = format!("--rsa-only --rsa-public-key {}", certificate.display());
    let rsa = &proxy.consumer_with("Restricted", &rsa);
    let legacy = &proxy.consumer_with("Old", "--dialect legacy");
    let once = &proxy.consumer_with("Canvas", "--accept repeats_once");
    let unknown = &Consumer::new("nobody", "secret");
    let old = (now() - 9_999).to_string();
    let (name, good, back) = (
        "launch_presentation_return_url",
        &with_return(RETURN),
        format!("{RETURN}&"),
    );
    let url = encode(RETURN);
    let query = &format!("/launch?{name}={url}");
    let large = format!("a={}", "b".repeat(2_000_000));
    let post = |form: &str| launch(consumer, form);
    let sent =
        |target: &str, consumer: &Consumer, form: &str| in_browser(signed(target, consumer, form));

    let mut cases = Vec::new();
    let mut add = |times, problem, end, calls: Vec<(&'static str, Call)>| {
        cases.extend(
            calls
                .into_iter()
                .map(|(name, call)| (name, times, call, problem, end)),
        );
    };
    let late = |form: &str| post(form).parameter("oauth_timestamp", &old);
    let retorn = good.replace("return", "retorn");
    let wrong = vec![
        ("wrong key", post("a=b").key("wrong&")),
        ("wrong key, with address", post(good).key("wrong&")),
        ("another form", post(good).signs_body(&retorn)),
        ("spoiled", post(good).spoiled("oauth_signature", "AAAA")),
        ("secret instead of RSA key", launch(rsa, good)),
    ];
    add(1, "signature_invalid", Page(401), wrong);
    let late = vec![("old", late("a=b")), ("old, with address", late(good))];
    add(1, "timestamp_refused", Page(401), late);
    let call = vec![("unknown consumer", launch(unknown, "a=b"))];
    add(1, "consumer_key_unknown", Page(401), call);
    let call = vec![("disabled consumer", launch(disabled, "a=b"))];
    add(1, "consumer_key_refused", Page(401), call);
    let call = vec![("no nonce", post("a=b").without("oauth_nonce"))];
    add(1, "parameter_absent", Page(400), call);
    let call = Call::post("/launch").form("a=b");
    add(
        1,
        "parameter_absent",
        Page(401),
        vec![("unsigned", in_browser(call))],
    );
    // A form that is too large is rejected before anything is known of it.
    add(1, "", Page(413), vec![("large", post(&large))]);
    // Under a right signature.
    let refused = vec![
        ("disabled", launch(disabled, good)),
        ("pinned", launch(school, good)),
    ];
    add(1, "consumer_key_refused", Platform(&back), refused);
    let call = vec![("not permitted", sent("/secret", consumer, good))];
    add(1, "permission_denied", Platform(&back), call);
    // Sent twice, so that the second is rejected. Credentials in the header sign the form as well.
    let in_header = Call::post("/launch").form(good).by(consumer);
    let proved = vec![("repeated", post(good)), ("header", in_browser(in_header))];
    add(2, "nonce_used", Platform(&back), proved);
    // An address in the query, which some consumers do not sign, or there twice: both copies are signed, or one of them.
    let other = format!("{name}={}", encode("https://lms.example/other"));
    let two = sent(&format!("/launch?{other}"), once, good).signs_target("/launch");
    let too_long = with_return(&format!("https://lms.example/{}", "a".repeat(5_000)));
    let mut nowhere = vec![
        ("repeated without address", post("a=b")),
        ("too long", post(&too_long)),
        (
            "unsigned query",
            sent(query, legacy, "a=b").signed_as_described(),
        ),
        ("query", sent(query, consumer, "a=b")),
        ("query and form", sent(query, consumer, good)),
        ("twice", post(&format!("{good}&{name}={url}"))),
        ("two addresses", post(&format!("{good}&{other}"))),
        ("two addresses, one signed", two),
        (
            "query, header",
            in_browser(Call::post(query).form("a=b").by(consumer)),
        ),
    ];
    let off_site = words(OFF_SITE).into_iter().chain(OFF_SITE_WITH_SPACE);
    nowhere.extend(off_site.map(|url| (url, post(&with_return(url)))));
    add(2, "nonce_used", Page(401), nowhere);
    for (url, begin) in ON_SITE {
        add(
            2,
            "nonce_used",
            Platform(begin),
            vec![(url, post(&with_return(url)))],
        );
    }

    let secrets = [consumer, disabled, school].map(|it| &*it.secret);
    for (name, times, call, problem, end) in cases {
        // The last one that is printed is the one that fails.
        println!("{name:?}");
        let count = api.count();
        let answer = match times {
            1 => proxy.send(call),
            _ => twice(&proxy, &call),
        };
        match end {
            Page(status) => {
                is_page(&answer, status);
                if !problem.is_empty() {
                    answer.is(status, problem);
                }
                assert!(!answer.fields.has("set-cookie"), "{answer:?}");
            }
            Platform(begin) => is_back(&answer, begin, problem, &secrets),
        }
        assert_eq!(api.count(), count + times - 1);
    }
    // No site may frame the page where none is named.
    let answer = proxy.send(sent("/window", consumer, "a=b").key("wrong&"));
    has(&answer.text(), &["The activity did not open"]);
    assert_eq!(ancestors(&answer), "'none'");
    assert_eq!(answer.header("x-frame-options"), Some("DENY"));
}

#[test]
fn a_fault_of_the_api_is_a_page_for_the_user_too() {
    let api = Upstream::replying(|_| Reply::hang_up());
    let (_api, proxy, caller) = Scene::before(api, LAUNCHES).into_parts();
    let answer = proxy.send(launch(&caller.consumer, &with_return(RETURN)));
    let text = is_page(&answer, 502);
    has(&text, &["Wait a moment, then open it again", "bad_gateway"]);
}

#[test]
fn the_page_has_the_language_of_the_launch_else_of_the_browser() {
    let (_api, proxy, caller) = Scene::with(LAUNCHES).into_parts();
    for (form, field, language, title) in [
        (
            "a=b",
            "de-AT,de;q=0.9",
            "de",
            "Die Aktivität wurde nicht geöffnet",
        ),
        (
            "launch_presentation_locale=fr-CA",
            "de",
            "fr",
            "L’activité ne s’est pas ouverte",
        ),
        (
            "launch_presentation_locale=pt_br",
            "de",
            "pt-BR",
            "A atividade não abriu",
        ),
        (
            "launch_presentation_locale=ar",
            "de",
            "ar\" dir=\"rtl",
            "تعذّر فتح النشاط",
        ),
        (
            "launch_presentation_locale=tlh",
            "ja",
            "ja",
            "アクティビティを開けませんでした",
        ),
        (
            "launch_presentation_locale=fr&launch_presentation_locale=es",
            "ko",
            "ko",
            "활동을 열지 못했습니다",
        ),
        (
            "launch_presentation_locale=%22%3E%3Cscript%3E",
            "zh-TW",
            "zh-Hant",
            "未能開啟活動",
        ),
    ] {
        let call = signed("/launch", &caller.consumer, form).key("wrong&");
        let call = call
            .header("Accept", "text/html")
            .header("Accept-Language", field);
        let answer = proxy.send(call);
        has(
            &answer.text(),
            &[
                &format!("<html lang=\"{language}"),
                &format!("<h1>{title}</h1>"),
            ],
        );
    }
}

#[test]
fn a_caller_that_is_no_browser_gets_its_usual_response() {
    let (_api, proxy, caller) = Scene::with(LAUNCHES).into_parts();
    let consumer = &caller.consumer;
    let good = with_return(RETURN);
    let plain = twice(&proxy, &signed("/launch", consumer, &good));
    plain.is(401, "nonce_used");
    assert_eq!(
        plain.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    let json = signed("/launch", consumer, &good).header("Accept", "application/json");
    assert_eq!(twice(&proxy, &json).json()["oauth_problem"], "nonce_used");
    // A script of a page, another body and another operation get the usual response too.
    let script = |name: &str, value: &str| {
        let call = signed("/launch", consumer, &good).header("Accept", "text/html");
        call.header(name, value)
    };
    let calls = [
        script("Sec-Fetch-Mode", "cors"),
        script("Sec-Fetch-Mode", "no-cors"),
        script("Sec-Fetch-Dest", "empty"),
        script("Sec-Fetch-Dest", "script"),
        Call::post("/launch")
            .json("{}")
            .by(consumer)
            .header("Accept", "text/html"),
        in_browser(signed("/outcomes", consumer, &good)),
    ];
    for call in calls {
        let answer = twice(&proxy, &call);
        answer.is(401, "nonce_used");
        assert!(!answer.fields.has("location"), "{answer:?}");
        let text = answer.text();
        assert!(!text.contains("The activity did not open"), "{text}");
        // The usual error page may not be framed.
        assert_eq!(ancestors(&answer), "'none'");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"));
    }
}

#[test]
fn no_other_page_may_be_framed() {
    let (_api, proxy, caller) = Scene::with(LAUNCHES).into_parts();
    let mut visitor = Visitor::to(&proxy);
    let mut answers = vec![visitor.open(LOGIN).answer];
    let get = |target: &str| proxy.send(Call::get(target).header("Accept", "text/html"));
    answers.extend(["/launch", "/launch/x", "/LAUNCH", "/nothing"].map(get));
    let put = Call::new("PUT", "/launch")
        .form("a=b")
        .by(&caller.consumer)
        .key("wrong&");
    answers.push(proxy.send(put.header("Accept", "text/html")));
    for answer in answers {
        assert_eq!(ancestors(&answer), "'none'", "{answer:?}");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{answer:?}");
    }
}

#[test]
fn nothing_of_a_launch_becomes_markup() {
    let (_api, proxy, caller) =
        Scene::with(&format!("signature.advice = 'full'\n{LAUNCHES}")).into_parts();
    let markup = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
    let encoded = encode(markup);
    let form = format!("{encoded}={encoded}&{}", with_return(markup));
    let consumer = &caller.consumer;
    let named = Consumer::new(markup, "secret");
    for call in [
        launch(consumer, &form).key("wrong&"),
        launch(&named, &form),
        launch(consumer, &form).parameter("oauth_nonce", markup),
        launch(consumer, &form).parameter("oauth_signature_method", markup),
        launch(consumer, &form)
            .parameter(&format!("oauth_{markup}"), markup)
            .key("wrong&"),
        launch(consumer, &form)
            .parameter("oauth_version", markup)
            .header("Accept-Language", markup),
    ] {
        let text = proxy.send(call).text();
        has(&text, &["The activity did not open"]);
        for part in ["<script", "<img", "\"'>"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn double_click_raises_no_alarm() {
    let (_api, proxy, caller) =
        Scene::with(&format!("admin.listen = '127.0.0.1:0'\n{LAUNCHES}")).into_parts();
    let consumer = &caller.consumer;
    let count = |name: &str| proxy.metric(name);
    let of_consumer = format!(
        "countersign_consumer_requests_total{{consumer=\"{}\",result=\"rejected\"}}",
        consumer.key
    );
    let repeated = "countersign_requests_total{verdict=\"launch_repeated\"}";
    let alarms = || proxy.logged(&["WARN"]) + proxy.logged(&["ERROR"]);
    let before = alarms();
    twice(&proxy, &launch(consumer, "a=b")).has_status(401);
    twice(&proxy, &launch(consumer, &with_return(RETURN))).has_status(303);
    until("both are counted", || count(repeated) == 2.0);
    assert_eq!(count(&of_consumer), 0.0);
    assert_eq!(
        count("countersign_requests_total{verdict=\"nonce_used\"}"),
        0.0
    );
    let line = proxy.logs(&[
        "verdict=\"launch_repeated\"",
        &format!("consumer={}", consumer.key),
        "status=303",
    ]);
    has(&line, &["INFO"]);
    assert_eq!(alarms(), before);
    // A rejection that leads back to its platform still counts for the consumer.
    proxy
        .command(&["consumer", "disable", &consumer.key])
        .done();
    until("the consumer is disabled", || {
        proxy.status(launch(consumer, &with_return(RETURN))) == 303
    });
    until("it is counted", || count(&of_consumer) >= 1.0);
    proxy.logs(&["verdict=\"consumer_key_refused\"", "status=303"]);
}

#[test]
fn a_gateway_that_forwards_by_itself_passes_the_response_on() {
    let config = format!("forward_auth.listen = '127.0.0.1:0'\n{LAUNCHES}");
    let (_api, proxy, caller) = Scene::with(&config).into_parts();
    let form = with_return(RETURN);
    for way in [Way::Forwarded, Way::Verify] {
        // With the body, the launch passes once.
        let wire = proxy.wire(&launch(&caller.consumer, &form));
        let described = way.describe_whole(&proxy.origin(), &wire);
        proxy.asks_as(&described).has_status(200);
        let again = proxy.asks_as(&described);
        again.has_status(303);
        assert!(
            again.header("location").unwrap().starts_with(RETURN),
            "{again:?}"
        );
        let wrong = launch(&caller.consumer, &form).key("wrong&");
        is_page(&proxy.asks_with_body(way, &wrong), 401);
        // Without it, nothing is proved.
        is_page(&proxy.asks(way, &launch(&caller.consumer, &form)), 401);
    }
    // nginx passes no body on, in neither direction.
    let answer = proxy.asks(Way::Nginx, &launch(&caller.consumer, &form));
    answer.has_status(401);
    assert!(
        answer.body.is_empty() && !answer.fields.has("location"),
        "{answer:?}"
    );
}

#[test]
fn the_doctor_says_where_a_launch_leads() {
    let (_api, proxy, caller) = Scene::with(LAUNCHES).into_parts();
    let explained = |path: &str, url: &str| {
        let call = signed(path, &caller.consumer, &with_return(url));
        proxy.explain(&call).stdout
    };
    let text = explained("/launch", RETURN);
    has(
        &text,
        &[
            "Launch\n",
            "https://lms.example https://*.lms.test:8443",
            &format!("goes back to {RETURN}"),
        ],
    );
    has(
        &explained("/launch", "https://evil.example/"),
        &["gets the same page"],
    );
    has(&explained("/window", RETURN), &["no site may frame"]);
    assert!(!explained("/outcomes", RETURN).contains("Launch\n"));
    let checked = proxy.command(&["check"]).done().stdout;
    has(
        &checked,
        &["3 are listed", "2 with launch; 1 with framed_by"],
    );
}
