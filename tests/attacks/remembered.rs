//! A user who is not asked again (`consent.remember`): what another site, another consumer or another user could make of it.

use std::thread;

use crate::support::{
    Call, Consumer, Proxy, Reply, Token, Upstream, User, Visitor,
    browser::Browser,
    legs::{APPLICATIONS, LOGIN, authorization, exchanges, query_value, token_of},
    proxy::CALLBACK,
    until,
};

/// A consumer that its user has allowed, and who would not be asked again.
struct Scene {
    _api: Upstream,
    proxy: Proxy,
    consumer: Consumer,
    user: User,
    held: Token,
}

impl Scene {
    fn with(config: &str) -> Self {
        let api = Upstream::start();
        let proxy = Proxy::with(&api, &format!("consent.remember = 'same'\n{config}"));
        let (consumer, user) = proxy.shop();
        let request = proxy.request_token(&consumer, CALLBACK);
        let verifier = proxy.verifier(&request, &user);
        let held = token_of(&proxy.send(exchanges(&consumer, &request, &verifier)));
        Self {
            _api: api,
            proxy,
            consumer,
            user,
            held,
        }
    }

    fn asks(&self) -> Token {
        self.proxy.request_token(&self.consumer, CALLBACK)
    }

    #[track_caller]
    fn is_undecided(&self, request: &Token) {
        let exchange = exchanges(&self.consumer, request, "no verifier");
        self.proxy.rejects(exchange, 401, "permission_unknown");
    }
}

#[test]
fn only_a_browser_that_goes_to_the_page_decides() {
    let scene = Scene::with("");
    let mut visitor = Visitor::logged_in(&scene.proxy, &scene.user);
    let request = scene.asks();
    let target = authorization(&request);
    let dest = "iframe frame embed object image script style font empty worker video report"
        .split(' ')
        .map(|dest| ("Sec-Fetch-Dest", dest));
    let mode = "no-cors cors same-origin websocket nested-navigate"
        .split(' ')
        .map(|mode| ("Sec-Fetch-Mode", mode));
    let purpose = [
        ("Sec-Purpose", "prefetch"),
        ("Sec-Purpose", "prefetch;prerender"),
        ("Purpose", "prefetch"),
    ];
    for (name, value) in dest.chain(mode).chain(purpose) {
        let fields = [
            ("Sec-Fetch-Dest", "document"),
            ("Sec-Fetch-Mode", "navigate"),
        ];
        // The field that shows what it is for may be one of two.
        let call = fields
            .into_iter()
            .fold(Call::get(&target).header(name, value), |call, (it, own)| {
                call.header(it, own)
            });
        visitor.send(call).has_status(200);
        scene.is_undecided(&request);
        let alone = Call::get(&target).header(name, value);
        visitor.send(alone).has_status(200);
        scene.is_undecided(&request);
    }
    visitor.send(Call::new("HEAD", &target)).has_status(200);
    scene.is_undecided(&request);
    // A form of another site, of no site, and without the value of our page.
    for fields in [
        &[("Sec-Fetch-Site", "cross-site")][..],
        &[("Sec-Fetch-Site", "same-site")],
        &[("Origin", "https://evil.example")],
        &[("Origin", "null")],
        &[],
    ] {
        for form in ["decision=allow", "decision=allow&csrf=", ""] {
            let call = Call::post(&target).form(form);
            let call = fields
                .iter()
                .fold(call, |call, (name, value)| call.header(name, value));
            visitor.send(call).has_status(403);
            scene.is_undecided(&request);
        }
    }
    // The page itself still goes on, from the site of the consumer too, and the verifier goes to its registered address alone.
    let from_shop = Call::get(&target)
        .header("Sec-Fetch-Site", "cross-site")
        .header("Sec-Fetch-Dest", "document")
        .header("Sec-Fetch-Mode", "navigate");
    let answer = visitor.send(from_shop);
    answer.has_status(303);
    let location = answer.header("location").unwrap();
    assert!(
        location.starts_with(&format!("{CALLBACK}&oauth_token=")),
        "{location}"
    );
}

#[test]
fn no_other_user_is_taken_for_the_one_who_allowed_it() {
    let scene = Scene::with("");
    let other = scene.proxy.user("mallory");
    let request = scene.asks();
    let target = authorization(&request);
    // Whoever is not logged in, whatever the cookie.
    let made_up = "a".repeat(43);
    for cookie in [None, Some("x"), Some(&*made_up)] {
        let mut visitor = Visitor::to(&scene.proxy);
        let cookie = cookie.map(|value| ("countersign".to_owned(), value.to_owned()));
        visitor.cookies.extend(cookie);
        let page = visitor.open(&target);
        page.answer.has_status(200);
        page.form_with("password");
        scene.is_undecided(&request);
    }
    // Another user, also in a browser that somebody has logged in as that user (login CSRF): their own consent counts.
    let mut mallory = Visitor::logged_in(&scene.proxy, &other);
    mallory.open(&target).form_with("decision");
    scene.is_undecided(&request);
    // A second cookie, planted from a neighbouring host, chooses no session.
    let user = Visitor::logged_in(&scene.proxy, &scene.user);
    let [own, planted] = [&user, &mallory].map(|it| it.cookies["countersign"].clone());
    for cookies in [[&own, &planted], [&planted, &own], [&own, &own]] {
        let [first, second] = cookies;
        let cookie = format!("countersign={first}; countersign={second}");
        let call = Call::get(&target).header("Cookie", &cookie);
        scene.proxy.served(call).has_status(400);
        scene.is_undecided(&request);
    }
    // A session from before the login (fixation) is not one after it.
    let mut visitor = Visitor::to(&scene.proxy);
    let login = visitor.open(LOGIN);
    let before = visitor.cookies.clone();
    visitor.log_in(&login, &scene.user);
    let mut fixed = Visitor::to(&scene.proxy);
    fixed.cookies = before;
    fixed.open(&target).form_with("password");
    scene.is_undecided(&request);
    // Another consumer has its own consent, and an open request its own consumer.
    let options = format!("--callback {CALLBACK}");
    let evil = scene.proxy.consumer_with("Shop", &options);
    let theirs = scene.proxy.request_token(&evil, CALLBACK);
    visitor.open(&authorization(&theirs)).form_with("decision");
    let stolen = format!("{}&oauth_consumer_key={}", target, evil.key);
    visitor.open(&stolen).answer.has_status(401);
    scene.is_undecided(&request);
}

#[test]
fn frames_and_pictures_of_a_neighbour_decide_nothing() {
    let scene = Scene::with("");
    let requests = [(); 3].map(|()| scene.asks());
    let [frame, picture, fetched] = requests
        .each_ref()
        .map(|it| format!("{}{}", scene.proxy.origin(), authorization(it)));
    // Another port of this host is the same site, so the browser sends the session cookie.
    let neighbour = Upstream::replying(move |_| {
        let page = format!(
            "<iframe src='{frame}'></iframe><img src='{picture}'><p id=done hidden>done</p><script>
             Promise.allSettled([new Promise(loaded => addEventListener('load', loaded)),
                 fetch('{fetched}', {{ mode: 'no-cors', credentials: 'include' }})]).then(() => done.hidden = false)
             </script>"
        );
        Reply::ok(page).header("Content-Type", "text/html")
    });
    let browser = Browser::start();
    browser.open(&format!("{}{LOGIN}", scene.proxy.origin()));
    browser.log_in(&scene.user);
    until("logged in", || {
        !browser.source().contains("name=\"password\"")
    });
    browser.open(neighbour.url());
    until("everything was loaded", || browser.text("#done") == "done");
    for request in &requests {
        scene.is_undecided(request);
    }
}

#[test]
fn a_withdrawal_ends_what_a_decision_under_way_would_give() {
    for reuse in [true, false] {
        let scene = Scene::with(&format!("tokens.reuse = {reuse}"));
        let visitors = [(); 4].map(|()| Visitor::logged_in(&scene.proxy, &scene.user));
        let mut withdrawing = Visitor::logged_in(&scene.proxy, &scene.user);
        let page = withdrawing.open(&format!("{APPLICATIONS}&withdraw={}", scene.consumer.key));
        let form = page
            .form_with("revoke")
            .press("revoke", &scene.consumer.key);
        let walk = |visitor: &mut Visitor<'_>| {
            let request = scene.asks();
            let page = visitor.open(&authorization(&request));
            let location = page.answer.header("location")?;
            let verifier = query_value(location, "oauth_verifier")?;
            let exchange = exchanges(&scene.consumer, &request, &verifier);
            let answer = scene.proxy.served(exchange);
            (answer.status == 200).then(|| token_of(&answer))
        };
        let given: Vec<Token> = thread::scope(|threads| {
            let walkers = visitors.map(|mut visitor| {
                threads.spawn(move || Vec::from_iter((0..12).filter_map(|_| walk(&mut visitor))))
            });
            withdrawing.submit(&page, &form).answer.has_status(200);
            let given = walkers.into_iter().flat_map(|it| it.join().unwrap());
            given.chain([scene.held.clone()]).collect()
        });
        for token in &given {
            let call = Call::get("/").by(&scene.consumer).with(token);
            scene.proxy.rejects(call, 401, "token_revoked");
        }
        // From now on the user is asked.
        let (_, page) = scene.proxy.consent(&scene.asks(), &scene.user);
        page.form_with("decision");
    }
}
