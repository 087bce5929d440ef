//! Calls that are served: signed, forwarded as HTTP/1.1, answered.

use std::{
    sync::{Arc, Barrier, Condvar, Mutex},
    time::Duration,
};

use crate::{
    http2::client::{Client, run},
    support::{Call, Placement, Proxy, Reply, Scene, Upstream, issuer::Issuer, proxy::Builder},
};

#[test]
fn a_signed_call_reaches_the_api_with_the_users_identity() {
    let Scene { api, proxy, caller } = Scene::start();
    run(async {
        let mut client = Client::to(&proxy).await;
        let call = Call::get("/members/7?a=1&b=x%20y").of(&caller);
        let answer = client.passes(call.clone()).await;
        assert_eq!(answer.text(), "hello from the API\n");
        assert_eq!(answer.fields["content-type"], "text/plain");
        assert!(!answer.fields.contains_key("connection"));
        assert!(!answer.fields.contains_key("transfer-encoding"));
        // The same connection, another stream, and the same nonce again.
        let (request, _) = client.request(&call);
        let replayed = request.clone();
        client
            .send_request(request, &[])
            .await
            .unwrap()
            .has_status(200);
        let answer = client
            .send_request(replayed, &[])
            .await
            .unwrap()
            .has_status(401);
        assert!(answer.text().contains("nonce_used"), "{answer:?}");
        client.send(Call::get("/members/7")).await.has_status(401);
    });
    let seen = api.requests();
    assert_eq!(seen.len(), 2);
    assert!(
        seen[0]
            .head
            .starts_with(b"GET /members/7?a=1&b=x%20y HTTP/1.1\r\n")
    );
    assert_eq!(seen[0].header("X-Auth-User"), Some(caller.user.id.as_str()));
    assert_eq!(seen[0].header("Host"), Some(proxy.host().as_str()));
    assert_eq!(seen[0].header("X-Forwarded-Proto"), Some("http"));
    assert!(!seen[0].fields.has("Authorization"));
}

#[test]
fn a_bearer_token_takes_the_same_way() {
    let (api, issuer) = (Upstream::start(), Issuer::start());
    let config = format!(
        "permission = [{{ name = 'a' }}, {{ name = 'b' }}]\noperations.forbidden_status = 403\n\
         operation = [{{ path = '/a' }}, {{ path = '/b', permission = 'b' }}]\n{}",
        issuer.section("")
    );
    let proxy = Proxy::with(&api, &config);
    let app = proxy.consumer_with("App", "--permission a");
    let token = issuer.token(&issuer.claims(&app.key, "user-7", "a"));
    let bearer = |target: &str, token: &str| Call::get(target).bearer(token);
    run(async {
        let mut client = Client::to(&proxy).await;
        // Many streams of one connection, and a token that is sent again.
        for _ in 0..3 {
            client.passes(bearer("/a", &token)).await;
        }
        let body = Call::post("/a").bearer(&token);
        client.passes(body.form("a=1")).await;
        for (call, status, error) in [
            (bearer("/a", "x.y.z"), 401, Some("invalid_token")),
            (bearer("/b", &token), 403, Some("insufficient_scope")),
            (
                bearer("/a?access_token=x", &token),
                400,
                Some("invalid_request"),
            ),
            (
                bearer("/a", &token).header("Authorization", "Basic YTpi"),
                400,
                None,
            ),
        ] {
            let answer = client.send(call).await.has_status(status);
            let challenges = answer.fields.get_all("www-authenticate").iter();
            let mut challenges = challenges.filter_map(|it| it.to_str().ok());
            let named = |error| format!("error=\"{error}\"");
            assert!(
                error.is_none_or(|error| challenges.any(|it| it.contains(&named(error)))),
                "{answer:?}"
            );
        }
        // Without credentials both doors are named.
        let answer = client.send(Call::get("/a")).await.has_status(401);
        assert_eq!(answer.fields.get_all("www-authenticate").iter().count(), 2);
    });
    let seen = api.requests();
    assert_eq!(seen.len(), 4);
    for seen in seen {
        assert_eq!(seen.header("X-Auth-User"), Some("user-7"));
        assert_eq!(seen.header("X-Auth-Kind"), Some("consumer"));
        assert!(!seen.fields.has("Authorization"));
    }
}

/// A browser sends each cookie in a line of its own (RFC 9113 §8.2.3).
#[test]
fn the_cookies_of_a_request_count_as_one_field() {
    let Scene { api, proxy, caller } = Scene::start();
    run(async {
        let mut client = Client::to(&proxy).await;
        let cookies = (0..200).fold(Call::get("/r").of(&caller), |call, at| {
            call.header("Cookie", &format!("c{at}=1"))
        });
        client.passes(cookies).await;
        let fields = (0..200).fold(Call::get("/r"), |call, at| {
            call.header("X-A", &format!("c{at}=1"))
        });
        client.send(fields).await.has_status(431);
    });
    let cookies = api.only_request().fields.all("cookie").join(" and ");
    assert!(cookies.starts_with("c0=1; c1=1; ") && cookies.ends_with("; c199=1"));
}

#[test]
fn bodies_go_up_with_and_without_a_length() {
    let api = Upstream::replying(|seen| Reply::ok(&seen.body));
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    let large = vec![b'x'; 3 << 20];
    run(async {
        let mut client = Client::to(&proxy).await;
        let call = |body: &[u8]| {
            Call::post("/up")
                .body("application/octet-stream", body)
                .of(&caller)
        };
        for body in [&b"small"[..], &large] {
            let (request, _) = client.request(&call(body));
            let answer = client.send_request(request, body).await.unwrap();
            assert_eq!(answer.has_status(200).body, body);
            let (mut request, _) = client.request(&call(body));
            request.headers_mut().remove("content-length");
            let answer = client.send_request(request, body).await.unwrap();
            assert_eq!(answer.has_status(200).body, body);
        }
        // No body at all, and an empty one.
        client.passes(call(b"")).await;
    });
    let seen = api.requests();
    assert_eq!(seen[0].header("Content-Length"), Some("5"));
    assert_eq!(seen[1].header("Transfer-Encoding"), Some("chunked"));
    assert_eq!(seen[1].text(), "small");
    assert_eq!(seen[2].header("Content-Length"), Some("3145728"));
    assert_eq!(seen[3].header("Transfer-Encoding"), Some("chunked"));
    assert_eq!(seen[4].header("Content-Length"), Some("0"));
}

#[test]
fn forms_are_verified_before_they_are_forwarded() {
    let Scene { api, proxy, caller } = Scene::start();
    run(async {
        let mut client = Client::to(&proxy).await;
        let form = |body: &str| Call::post("/f").form(body).of(&caller);
        client.passes(form("a=1&b=2")).await;
        client.passes(form("a=1").placed(Placement::Body)).await;
        let (mut request, body) = client.request(&form("c=3"));
        request.headers_mut().remove("content-length");
        client
            .send_request(request, &body)
            .await
            .unwrap()
            .has_status(200);
        let (request, _) = client.request(&form("a=1&b=2"));
        let tampered = client.send_request(request, b"a=1&b=3").await.unwrap();
        assert!(
            tampered
                .has_status(401)
                .text()
                .contains("signature_invalid")
        );
    });
    let bodies: Vec<String> = api.requests().iter().map(|seen| seen.text()).collect();
    assert_eq!(bodies, ["a=1&b=2", "a=1", "c=3"]);
}

#[test]
fn responses_arrive_in_every_framing() {
    let large = "0123456789abcdef".repeat(1 << 18);
    let api = {
        let large = large.clone();
        Upstream::replying(move |seen| match seen.target.as_str() {
            "/length" => Reply::ok(&large),
            "/chunked" => Reply::status("200 OK").chunked(&["one ", "two ", "three"]),
            "/close" => Reply::status("200 OK").until_close("to the end"),
            "/204" => Reply::status("204 No Content"),
            "/304" => Reply::status("304 Not Modified").header("ETag", "\"x\""),
            "/empty" => Reply::ok(""),
            _ => Reply::status("404 Not Found").body("nothing here"),
        })
    };
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    run(async {
        let mut client = Client::to(&proxy).await;
        for (target, status, body) in [
            ("/length", 200, large.as_str()),
            ("/chunked", 200, "one two three"),
            ("/close", 200, "to the end"),
            ("/204", 204, ""),
            ("/304", 304, ""),
            ("/empty", 200, ""),
            ("/other", 404, "nothing here"),
        ] {
            let call = Call::get(target).of(&caller);
            let answer = client.send(call).await.has_status(status);
            assert!(answer.text() == body, "{target}");
            let head = Call::new("HEAD", target).of(&caller);
            let answer = client.send(head).await.has_status(status);
            assert!(answer.body.is_empty(), "{target}");
        }
    });
}

#[test]
fn a_response_that_breaks_off_resets_its_stream() {
    let api = Upstream::replying(|seen| match seen.target.as_str() {
        "/length" => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").closing(),
        "/chunked" => {
            Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
                .closing()
        }
        "/garbage" => {
            Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n")
                .closing()
        }
        _ => Reply::ok("fine"),
    });
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    run(async {
        let mut client = Client::to(&proxy).await;
        for target in ["/length", "/chunked", "/garbage"] {
            let (request, _) = client.request(&Call::get(target).of(&caller));
            let error = client.send_request(request, &[]).await.unwrap_err();
            assert!(error.is_reset(), "{target}: {error}");
            // The other streams of the connection are not harmed.
            let call = Call::get("/fine").of(&caller);
            client.passes(call).await;
        }
    });
}

#[test]
fn requests_of_one_connection_run_concurrently() {
    let all = Arc::new(Barrier::new(8));
    let api = Upstream::replying(move |_| {
        all.wait();
        Reply::ok("together")
    });
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    run(async {
        let client = Client::to(&proxy).await;
        let calls = (0..8).map(|n| {
            let mut client = client.clone();
            let call = Call::get(&format!("/{n}")).of(&caller);
            tokio::spawn(async move { client.passes(call).await })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap().text(), "together");
        }
    });
}

/// One caller asks for more at once than is served: `served` calls pass, the others get 503; later all are served.
fn only_so_many_are_served(proxy: Builder, api: &Upstream, gate: &Gate, served: usize) {
    let proxy = proxy.start();
    let caller = proxy.somebody();
    run(async {
        let client = Client::to(&proxy).await;
        let call = |n: usize| {
            let mut client = client.clone();
            let call = Call::get(&format!("/{n}")).of(&caller);
            tokio::spawn(async move { client.send(call).await })
        };
        let held: Vec<_> = (0..served).map(call).collect();
        while api.count() < served {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for n in served..served + 20 {
            let answer = call(n).await.unwrap().has_status(503);
            assert!(answer.fields.contains_key("retry-after"));
        }
        proxy.ask_admin("/readyz").has_status(200);
        gate.open();
        for call in held {
            call.await.unwrap().has_status(200);
        }
        for n in 0..served {
            call(n).await.unwrap().has_status(200);
        }
    });
    assert_eq!(api.count(), 2 * served);
}

#[test]
fn the_limit_of_streams_bounds_the_requests_served_at_once() {
    let gate = Gate::default();
    let api = gate.api();
    let proxy = Proxy::in_front_of(&api).config("limits.concurrent_requests = 7");
    only_so_many_are_served(proxy, &api, &gate, 7);
}

#[test]
fn streams_of_one_caller_cannot_take_descriptors_of_others() {
    let gate = Gate::default();
    let api = gate.api();
    // 100 less the 64 that are the program's own: 18 requests, each with a connection to the API.
    let proxy = Proxy::in_front_of(&api).descriptors(100);
    only_so_many_are_served(proxy, &api, &gate, 18);
}

/// The signal that an API waits for before it answers.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn api(&self) -> Upstream {
        let gate = self.clone();
        Upstream::replying(move |_| {
            gate.wait();
            Reply::ok("at last")
        })
    }

    fn wait(&self) {
        let (open, opened) = &*self.0;
        drop(
            opened
                .wait_while(open.lock().unwrap(), |open| !*open)
                .unwrap(),
        );
    }

    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

#[test]
fn caller_that_waits_for_100_is_rejected_first_or_continues() {
    let api = Upstream::replying(|seen| Reply::ok(&seen.body));
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    run(async {
        let mut client = Client::to(&proxy).await;
        let post = Call::post("/up")
            .bytes(b"wanted")
            .header("Expect", "100-continue");
        for (call, wanted) in [(post.clone().of(&caller), true), (post, false)] {
            let (request, body) = client.request(&call);
            let mut send = client.sender().ready().await.unwrap();
            let (mut response, mut stream) = send.send_request(request, false).unwrap();
            if wanted {
                // hyper sends no interim responses over HTTP/2. RFC 9110 §10.1.1: "A client that sends a 100-continue
                // expectation is not required to wait for any specific length of time".
                let interim = std::future::poll_fn(|context| response.poll_informational(context));
                let waited = tokio::time::timeout(Duration::from_millis(200), interim).await;
                assert!(waited.is_err(), "{waited:?}");
                stream.send_data(body.into(), true).unwrap();
                let answer = crate::http2::client::read(response.await.unwrap())
                    .await
                    .unwrap();
                assert_eq!(answer.has_status(200).text(), "wanted");
            } else {
                let answer = response.await.unwrap();
                assert_eq!(answer.status(), 401);
            }
        }
        client.passes(Call::get("/").of(&caller)).await;
    });
    assert_eq!(api.count(), 2);
}

#[test]
fn a_split_cookie_arrives_joined_and_without_ours() {
    let Scene { api, proxy, caller } = Scene::start();
    run(async {
        let mut client = Client::to(&proxy).await;
        let call = Call::get("/")
            .header("cookie", "a=1")
            .header("cookie", "countersign=stolen")
            .header("cookie", "b=2")
            .of(&caller);
        client.passes(call).await;
    });
    let seen = api.only_request();
    let cookies = seen.fields.all("Cookie");
    assert_eq!(cookies.len(), 1, "{cookies:?}");
    assert_eq!(cookies[0], "a=1; b=2");
}

#[test]
fn caller_that_leaves_a_paused_response_ends_its_api_request() {
    let api = Upstream::handling(|exchange| {
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun")?;
        exchange.peer_closed();
        Ok(crate::support::upstream::After::Close)
    });
    // Such a request ends only when the caller leaves.
    let proxy = Proxy::with(
        &api,
        "[limits]\nbody_timeout = '10m'\n[operations]\nunlisted = 'anonymous'",
    );
    let gone = |count: f64| {
        crate::support::until("the requests are over", || {
            let aborted = proxy.metric("countersign_requests_total{verdict=\"aborted\"}");
            aborted >= count
        });
    };
    run(async {
        let begin = async |client: &Client| {
            let (request, _) = client.request(&Call::get("/pauses"));
            let mut send = client.sender().ready().await.unwrap();
            let (response, _) = send.send_request(request, true).unwrap();
            let mut response = response.await.unwrap();
            response.body_mut().data().await.unwrap().unwrap();
            response
        };
        let client = Client::to(&proxy).await;
        let answers = [begin(&client).await, begin(&client).await];
        drop(answers);
        while proxy.metric("countersign_requests_total{verdict=\"aborted\"}") < 2.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(begin(&client).await);
    });
    // It also ends with its connection, which the end of the runtime closes.
    gone(3.0);
}

#[test]
fn caller_that_leaves_an_unread_body_ends_its_api_request() {
    let gate = Gate::default();
    let api = {
        let gate = gate.clone();
        Upstream::handling(move |_| {
            gate.wait();
            Ok(crate::support::upstream::After::Close)
        })
    };
    let proxy = Proxy::with(
        &api,
        "[limits]\nbody_timeout = '10m'\n[operations]\nunlisted = 'anonymous'",
    );
    run(async {
        let mut client = Client::to(&proxy).await;
        let (mut request, _) = client.request(&Call::post("/up"));
        request.headers_mut().remove("content-length");
        let mut send = client.sender().ready().await.unwrap();
        let (_response, mut stream) = send.send_request(request, false).unwrap();
        // Until all windows and buffers on the way are full.
        stream.reserve_capacity(16 * 1024);
        let mut room = async || {
            let room = std::future::poll_fn(|context| stream.poll_capacity(context));
            let room = tokio::time::timeout(Duration::from_millis(500), room).await;
            let Ok(Some(Ok(room))) = room else {
                return false;
            };
            stream.send_data(vec![b'x'; room].into(), false).unwrap();
            stream.reserve_capacity(16 * 1024);
            true
        };
        while room().await || api.count() == 0 {}
        stream.send_reset(h2::Reason::CANCEL);
        while proxy.metric("countersign_requests_total{verdict=\"aborted\"}") < 1.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The connection itself goes on.
        client.send(Call::get("/").host("other.example")).await;
    });
    gate.open();
}
