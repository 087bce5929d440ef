//! The advice on a wrong signature: each mistake is made by the tests' own signer, and the response names it.
//!
//! Promise (Signatures): The advice on a wrong signature discloses no secret and takes at most 50 ms of CPU a second. Also in
//! `tests/acceptance/request/rejections.rs`, `src/request/verify/advice.rs`, `src/request/verify/tests.rs`.

use std::{fs, thread, time::Duration};

use crate::support::{
    Call, Caller, PATIENCE, Proxy, Upstream, fresh, has,
    legs::asks,
    now,
    signer::{self, encode},
    within,
};

/// A proxy with an alias and a prefix, and the data needed to sign for it.
struct Service {
    api: Upstream,
    proxy: Proxy,
    caller: Caller,
}

const ORIGIN: &str = "http://api.test";
const GENERAL: &str =
    "no known mistake makes this signature; print the base string that your library signs";

impl Service {
    fn start(enforcement: &str) -> Self {
        let api = Upstream::start();
        let urls = "service.public_api_urls = ['http://api.test/v2', 'http://alias.test']";
        let proxy = Proxy::with(
            &api,
            &format!("{urls}\nsignature.enforcement = '{enforcement}'"),
        );
        let caller = proxy.somebody();
        Self { api, proxy, caller }
    }

    /// A call of the public URL, signed for it.
    fn signed(&self, call: Call) -> Call {
        call.host("api.test").of(&self.caller).for_origin(ORIGIN)
    }

    fn get(&self, target: &str) -> Call {
        self.signed(Call::get(target))
    }

    /// A call signed with the base string of the method, `uri` and the `oauth_` parameters as `normalized` changes
    /// them.
    fn signs(&self, call: Call, uri: &str, normalized: impl FnOnce(&str) -> String) -> Call {
        let (nonce, time) = (fresh("n"), now());
        let oauth = format!(
            "oauth_consumer_key={}&oauth_nonce={nonce}&oauth_signature_method=HMAC-SHA1&oauth_timestamp={time}&\
             oauth_token={}&oauth_version=1.0",
            encode(&self.caller.consumer.key),
            encode(&self.caller.token.token)
        );
        let normalized = encode(normalized(&oauth));
        let base = format!("{}&{}&{normalized}", call.method, encode(uri));
        let key = format!(
            "{}&{}",
            encode(&self.caller.consumer.secret),
            encode(&self.caller.token.secret)
        );
        self.signed(call)
            .parameter("oauth_nonce", &nonce)
            .parameter("oauth_timestamp", &time.to_string())
            .spoiled(
                "oauth_signature",
                &signer::signature("HMAC-SHA1", &key, &base),
            )
    }

    /// The advice in the response.
    #[track_caller]
    fn advice(&self, call: Call) -> String {
        let answer = self.proxy.send(call);
        answer.is(401, "signature_invalid");
        let text = answer.text();
        assert!(
            !text.contains(&self.caller.consumer.secret)
                && !text.contains(&self.caller.token.secret)
        );
        answer.form("oauth_problem_advice").unwrap()
    }
}

#[test]
fn advice_names_the_url_signed_instead_of_the_one_called() {
    let service = Service::start("enforce");
    let call = || service.get("/v2/photos/a?x=1");
    let internal = service.api.url().to_owned();
    for (call, told) in [
        (
            call().for_origin("http://alias.test"),
            "another URL of this service was signed",
        ),
        (
            call()
                .for_origin("http://alias.test")
                .signs_target("/photos/a?x=1"),
            "another URL of this service was signed",
        ),
        (
            call().for_origin(&internal).signs_target("/photos/a?x=1"),
            "not the address at which this service listens or that of the API",
        ),
        (
            call().for_origin(&internal),
            "not the address at which this service listens or that of the API",
        ),
        (call().for_origin("http://www.api.test"), "www. in front"),
        (
            call().for_origin("https://api.test"),
            "sign the scheme of the public URL",
        ),
        (
            call().signs_target("/photos/a?x=1"),
            "with what precedes the API's own path",
        ),
        (
            call().signs_target("/a?x=1"),
            "with what precedes the API's own path",
        ),
        (
            call().signs_target("/v2/v2/photos/a?x=1"),
            "a prefix was signed that the public URL does not have",
        ),
        (call().signs_target("//v2/photos/a?x=1"), "as many slashes"),
        (
            call().signs_target("/?x=1"),
            "sign the whole URL, path included",
        ),
        (
            service.get("/v2/xcal;all").signs_target("/v2/xcal%3Ball"),
            "its characters were percent-encoded for the signature alone",
        ),
        (
            service.signs(Call::get("/v2/x"), "api.test/v2/x", str::to_owned),
            "sign the absolute URI, scheme and host included",
        ),
    ] {
        let advice = service.advice(call);
        assert!(advice.contains(told), "{told}: {advice}");
        // The address of the API is never shown.
        assert!(!advice.contains(service.api.authority()), "{advice}");
    }
    service.api.saw_nothing();
}

/// The body is not read before the signature has failed, and then only a small one of known length.
#[test]
fn advice_names_a_signed_body_that_is_not_a_form() {
    let service = Service::start("enforce");
    let post = || service.signed(Call::post("/v2/x"));
    let told = "leave a body out of what is signed";
    for call in [
        post()
            .json("{\"a\": \"b c\", \"n\": 1}")
            .signs_body("a=b+c&n=1"),
        post().json("{\"a\":1}").signs_body("%7B%22a%22%3A1%7D="),
        post().body("text/plain", b"a=b").signs_body("a=b"),
    ] {
        let advice = service.advice(call);
        assert!(advice.contains(told), "{advice}");
    }
    for call in [
        post().chunked(&[b"a=b"]).signs_body("a=b"),
        post()
            .body("text/plain", format!("a={}", "x".repeat(5_000)).as_bytes())
            .signs_body(&format!("a={}", "x".repeat(5_000))),
    ] {
        assert!(service.advice(call).starts_with(GENERAL));
    }
    service.api.saw_nothing();
}

#[test]
fn advice_names_body_parts_that_were_signed_or_hold_credentials() {
    let service = Service::start("enforce");
    const TYPE: &str = "multipart/form-data; boundary=b";
    let part = |name: &str, value: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let file = |bytes: usize| {
        let name = "name=\"photo\"; filename=\"a.png\"";
        let head = format!("--b\r\nContent-Disposition: form-data; {name}\r\n\r\n");
        format!("{head}{}\r\n--b--\r\n", "x".repeat(bytes))
    };
    let upload = |bytes: usize| {
        let body = part("title", "A & B") + &part("is_public", "1") + &file(bytes);
        let call = service.signed(Call::post("/v2/upload"));
        call.body(TYPE, body.as_bytes())
            .signs_body("title=A+%26+B&is_public=1")
    };
    has(
        &service.advice(upload(10)),
        &["leave a body out of what is signed"],
    );
    // One that is too large to be read is named by its type.
    has(
        &service.advice(upload(5_000)),
        &["multipart/form-data body are never signed"],
    );
    let credentials = part("oauth_consumer_key", &service.caller.consumer.key) + &file(10);
    let here = |call: Call| call.host("api.test");
    for (call, told) in [
        (
            Call::post("/v2/upload").body(TYPE, credentials.as_bytes()),
            "in the parts of multipart/form-data are not read",
        ),
        (
            Call::post("/v2/x").bytes(b"oauth_consumer_key=x&oauth_signature=y"),
            "the body has no Content-Type, so it is not read as a form",
        ),
    ] {
        let answer = service.proxy.send(here(call));
        answer.is(401, "parameter_absent");
        has(&answer.form("oauth_problem_advice").unwrap(), &[told]);
    }
    for (call, told) in [
        // The flow of launchpadlib.
        (
            Call::post("/oauth/request_token").bytes(b"oauth_consumer_key=x&oauth_signature=y"),
            "the body has no Content-Type, so it is not read as a form",
        ),
        (
            Call::post("/oauth/access_token").body(TYPE, credentials.as_bytes()),
            "in the parts of multipart/form-data are not read",
        ),
    ] {
        let answer = service.proxy.send(call);
        answer.is(401, "parameter_absent");
        has(&answer.form("oauth_problem_advice").unwrap(), &[told]);
    }
    service.api.saw_nothing();
}

#[test]
fn log_names_a_wrong_parameter_and_mistake_but_not_its_value() {
    let service = Service::start("enforce");
    let log = |call: Call, parts: &[&str]| {
        service.proxy.send(call).has_status(400);
        service.proxy.logs(parts);
    };
    let get = || service.get("/v2/x");
    let parts = [
        "parameters=oauth_timestamp",
        "not a positive number of seconds",
    ];
    log(get().parameter("oauth_timestamp", "s3cret"), &parts);
    log(
        get().parameter("oauth_nonce", "s3cret s3cret"),
        &["parameters=oauth_nonce", "visible ASCII"],
    );
    log(
        get().without("oauth_nonce"),
        &["parameter_absent", "parameters=oauth_nonce"],
    );
    log(
        service.get("/v2/x?oauth_token=s3cret"),
        &["parameters=oauth_token", "given more than once"],
    );
    log(
        service.get("/v2/x?oauth.token=s3cret"),
        &["parameters=oauth.token", "the API could read it"],
    );
    assert_eq!(service.proxy.logged(&["s3cret"]), 0);
}

#[test]
fn advice_names_the_previous_secret_after_its_grace() {
    for grace in [" --grace 1s", ""] {
        let service = Service::start("enforce");
        let key = &service.caller.consumer.key;
        service
            .proxy
            .run(&format!("consumer rotate-secret {key}{grace}"));
        let rejected = within(PATIENCE, "the old secret no longer counts", || {
            let answer = service.proxy.send(service.get("/v2/x"));
            (answer.status == 401).then_some(answer)
        });
        rejected.is(401, "signature_invalid");
        let advice = rejected.form("oauth_problem_advice").unwrap();
        has(&advice, &["the one before is no longer accepted"]);
        service.proxy.send(service.get("/v2/x")).has_status(401);
    }
}

#[test]
fn advice_names_the_listener_and_another_path_of_a_token_call() {
    let proxy = Proxy::with(
        &Upstream::start(),
        "service = { base_url = 'http://api.test', allow_http = true }",
    );
    let caller = proxy.somebody();
    let listening = format!("http://{}", proxy.address());
    let call = Call::get("/x").host("api.test").of(&caller);
    for (call, told) in [
        (
            call.for_origin(&listening),
            "not the address at which this service listens",
        ),
        (
            asks(&caller.consumer, "oob")
                .host("api.test")
                .for_origin("http://api.test")
                .signs_target("/oauth/access_token"),
            "another token path of this service was signed",
        ),
    ] {
        let answer = proxy.send(call);
        answer.is(401, "signature_invalid");
        has(&answer.form("oauth_problem_advice").unwrap(), &[told]);
    }
}

/// The means of a consumer's authors who do not run the proxy.
#[test]
fn advice_shows_the_expected_base_string_if_no_mistake_is_known() {
    let service = Service::start("enforce");
    let advice = service.advice(service.get("/v2/x?a=1").key("another&token"));
    let told =
        "it has to begin with GET&http%3A%2F%2Fapi.test%2Fv2%2Fx& and contain every parameter";
    assert!(advice.contains(told), "{advice}");
    assert!(!advice.contains("countersign"), "{advice}");
    // The key has a token secret, and the call no token.
    let empty = service.get("/v2/x").parameter("oauth_token", "");
    has(
        &service.advice(empty),
        &["or an empty one, so the token secret of the key has to be empty"],
    );
}

/// Any caller that knows a consumer's key can send wrong signatures.
#[test]
fn wrong_rsa_signatures_cost_workers_at_most_what_right_ones_do() {
    const CALLS: usize = 240;

    let service = Service::start("enforce");
    let (private, public) = signer::rsa_key_pair(service.proxy.directory());
    let public = public.to_str().unwrap();
    let robot = service
        .proxy
        .consumer_with("Robot", &format!("--rsa-public-key {public}"));
    let token = service.proxy.token(&robot, &service.proxy.user("ada"));
    let call = || {
        let call = Call::get("/v2/x").by(&robot).with(&token).host("api.test");
        call.for_origin(ORIGIN).rsa("RSA-SHA256", &private)
    };

    let before = worker_time(&service.proxy);
    for _ in 0..CALLS {
        let answer = service.proxy.send(service.get("/v2/x"));
        answer.has_status(200);
    }
    let right = worker_time(&service.proxy) - before;

    // Signed by the consumer's own key, so that every mistake has to be tried.
    let wire = service.proxy.wire(&call().signs_target("/another/call"));
    let undiagnosed: usize = thread::scope(|scope| {
        let flood = (0..40).map(|_| {
            scope.spawn(|| {
                let answers = (0..CALLS / 40).map(|_| {
                    let mut connection = service.proxy.connect();
                    connection.send(&wire);
                    let answer = connection.answer("GET");
                    answer.is(401, "signature_invalid");
                    let advice = answer.form("oauth_problem_advice").unwrap();
                    usize::from(advice.starts_with("not diagnosed, because"))
                });
                answers.sum::<usize>()
            })
        });
        let flood: Vec<_> = flood.collect();
        flood.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    let wrong = worker_time(&service.proxy) - before - right;
    assert!(undiagnosed > 0);
    assert!(
        wrong < 3 * right,
        "{wrong:?} for wrong calls, {right:?} for right ones"
    );
    service.proxy.send(call()).has_status(200);
}

/// The time that the worker threads have run on a core.
fn worker_time(proxy: &Proxy) -> Duration {
    let pid = proxy.pid().as_raw_nonzero();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let read = |path: std::path::PathBuf| fs::read_to_string(path).unwrap_or_default();
    let tasks = tasks.map(|task| task.unwrap().path());
    let workers = tasks.filter(|task| read(task.join("comm")).starts_with("worker-"));
    let spent = workers.map(|task| read(task.join("schedstat")));
    let nanoseconds = spent.map(|text| text.split(' ').next().unwrap().parse::<u64>().unwrap());
    Duration::from_nanos(nanoseconds.sum())
}
