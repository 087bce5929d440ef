//! Gateways that are not installed here. Stand-ins read the same files and do what their documents say: an implementation of
//! Kubernetes' Gateway API does what the text of `HTTPExternalAuthFilter` says, and APISIX what the source of its plugin
//! `forward-auth` does.

use std::net::SocketAddr;

use serde_json::Value;

use super::{file, manifests::build, printed, tool};
use crate::support::{
    Answer, Call, Connection, Placement, Reply, Upstream, has,
    proxy::{Builder, Caller, Proxy},
    upstream::Seen,
};

const ORIGIN: &str = "https://api.example.com";
const HOST: &str = "api.example.com";
const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = r#"{"a":1}"#;
const HASH: &str = "n4nHQM60bXQYySSnisV5QdXpZSA=";

type Sent = Vec<(String, String)>;

/// The strings of a list in a file.
fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().unwrap().iter();
    items.map(|it| it.as_str().unwrap().to_owned()).collect()
}

fn is_in(names: &[String], name: &str) -> bool {
    names.iter().any(|it| it.eq_ignore_ascii_case(name))
}

/// The fields of a request with one of these names.
fn shown(seen: &Seen, names: &[String]) -> Sent {
    let fields = seen.fields.0.iter();
    fields
        .filter(|(name, _)| is_in(names, name))
        .cloned()
        .collect()
}

fn send(address: SocketAddr, line: &str, fields: &Sent, body: &[u8]) -> Answer {
    let mut wire = format!("{line} HTTP/1.1\r\n").into_bytes();
    for (name, value) in fields {
        wire.extend(format!("{name}: {value}\r\n").into_bytes());
    }
    wire.extend(b"\r\n");
    wire.extend(body);
    let mut connection = Connection::to(address);
    connection.send(&wire);
    connection.answer(line.split(' ').next().unwrap())
}

/// The answer of another server, with the fields that pass.
fn relayed(answer: &Answer, passes: impl Fn(&str) -> bool) -> Reply {
    let mut reply = Reply::status(&format!("{} Relayed", answer.status));
    for (name, value) in &answer.fields.0 {
        if passes(name) && !name.eq_ignore_ascii_case("content-length") {
            reply = reply.header(name, value);
        }
    }
    reply.body(&answer.body)
}

/// Forwards a request with these fields instead of its own of their names, and without those to remove.
fn forward(api: SocketAddr, seen: &Seen, set: &Sent, removed: &[String]) -> Reply {
    let mut fields = seen.fields.0.clone();
    fields.retain(|(name, _)| {
        let is_set = set.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
        let framing = ["content-length", "transfer-encoding", "connection"];
        !is_set && !framing.contains(&&*name.to_ascii_lowercase())
    });
    fields.extend(set.clone());
    fields.retain(|(name, _)| !is_in(removed, name));
    fields.push(("Content-Length".into(), seen.body.len().to_string()));
    let line = format!("{} {}", seen.method, seen.target);
    relayed(&send(api, &line, &fields, &seen.body), |_| true)
}

/// The rule of an HTTPRoute with `ExternalAuth`.
#[derive(Clone)]
struct ExternalAuth {
    path: String,
    allowed: Vec<String>,
    copied: Vec<String>,
    removed: Vec<String>,
    max_size: usize,
    /// A larger body is cut. The text of `maxSize` says so, and that of `forwardBody` that it is rejected.
    cuts: bool,
}

impl ExternalAuth {
    fn of_manifests(cuts: bool) -> Self {
        let built = build(&["gateway-api"]);
        let routes = built[0]["routes"].as_array().unwrap();
        let is_of_api = |route: &&Value| route["hostnames"][0] == HOST;
        let rule = &routes.iter().find(is_of_api).unwrap()["rules"][0];
        let [auth, modifier] = [0, 1].map(|index| &rule["filters"][index]);
        let auth = &auth["externalAuth"];
        let max_size = auth["forwardBody"]["maxSize"].as_u64().unwrap();
        Self {
            path: auth["http"]["path"].as_str().unwrap().to_owned(),
            allowed: strings(&auth["http"]["allowedHeaders"]),
            copied: strings(&auth["http"]["allowedResponseHeaders"]),
            removed: strings(&modifier["requestHeaderModifier"]["remove"]),
            max_size: usize::try_from(max_size).unwrap(),
            cuts,
        }
    }

    fn answer(&self, seen: &Seen, decisions: SocketAddr, api: SocketAddr) -> Reply {
        let mut body = &*seen.body;
        if body.len() > self.max_size {
            if !self.cuts && self.max_size > 0 {
                return Reply::status("413 Content Too Large");
            }
            body = &body[..self.max_size];
        }
        let always = ["Host", "Authorization"].map(str::to_owned);
        let mut fields = shown(seen, &always);
        fields.push(("Content-Length".into(), body.len().to_string()));
        fields.extend(shown(seen, &self.allowed));
        let line = format!("{} {}{}", seen.method, self.path, seen.target);
        let decision = send(decisions, &line, &fields, body);
        if decision.status != 200 {
            return relayed(&decision, |_| true);
        }
        let mut copied = decision.fields.0.clone();
        copied.retain(|(name, _)| {
            let is_framing = name.eq_ignore_ascii_case("content-length");
            !is_framing && (self.copied.is_empty() || is_in(&self.copied, name))
        });
        forward(api, seen, &copied, &self.removed)
    }
}

/// The plugin `forward-auth` of a route of APISIX, and its `proxy-rewrite`.
#[derive(Clone)]
struct ForwardAuth {
    sends_body: bool,
    shown: Vec<String>,
    copied: Vec<String>,
    told: Vec<String>,
    removed: Vec<String>,
}

/// The two routes of the API: of bodies that a signature covers, and of everything else.
fn apisix_routes() -> [ForwardAuth; 2] {
    let mut python = tool("python");
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let path = file("deploy/gateways/forward-auth/apisix.yaml");
    let read: Value =
        serde_json::from_str(&printed(python.args(["-c", script]).arg(path))).unwrap();
    [0, 1].map(|index| {
        let route = &read["routes"][index];
        assert_eq!(route["hosts"][0], HOST);
        let auth = &route["plugins"]["forward-auth"];
        assert_eq!(auth["allow_degradation"], false);
        ForwardAuth {
            sends_body: auth["request_method"] == "POST",
            shown: strings(&auth["request_headers"]),
            copied: strings(&auth["upstream_headers"]),
            told: strings(&auth["client_headers"]),
            removed: strings(&route["plugins"]["proxy-rewrite"]["headers"]["remove"]),
        }
    })
}

impl ForwardAuth {
    fn answer(&self, seen: &Seen, decisions: SocketAddr, api: SocketAddr) -> Reply {
        let mut fields: Sent = [
            ("Host", "127.0.0.1:8083"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Method", &*seen.method),
            ("X-Forwarded-Host", HOST),
            ("X-Forwarded-Uri", &*seen.target),
            ("X-Forwarded-For", "192.0.2.1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let (method, body) = if self.sends_body {
            let names = "Content-Length Expect Transfer-Encoding Content-Encoding";
            let names: Vec<String> = names.split(' ').map(str::to_owned).collect();
            fields.extend(shown(seen, &names));
            if seen.header("Content-Length").is_none() && !seen.body.is_empty() {
                fields.push(("Content-Length".into(), seen.body.len().to_string()));
            }
            ("POST", &*seen.body)
        } else {
            ("GET", &b""[..])
        };
        let missing = |name: &String| !fields.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
        let names: Vec<String> = self
            .shown
            .iter()
            .filter(|it| missing(it))
            .cloned()
            .collect();
        fields.extend(shown(seen, &names));
        let decision = send(decisions, &format!("{method} /forwarded"), &fields, body);
        if decision.status >= 300 {
            return relayed(&decision, |name| is_in(&self.told, name));
        }
        // A field that the response does not have is removed.
        let mut removed = self.removed.clone();
        removed.extend(
            self.copied
                .iter()
                .filter(|name| !decision.fields.has(name))
                .cloned(),
        );
        let copied = decision.fields.0.iter();
        let copied = copied
            .filter(|(name, _)| is_in(&self.copied, name))
            .cloned();
        forward(api, seen, &copied.collect(), &removed)
    }
}

/// A stand-in in front of an API, and the countersign that it asks.
struct Stage {
    gateway: Upstream,
    api: Upstream,
    proxy: Proxy,
    caller: Caller,
}

impl Stage {
    fn with(
        config: &str,
        answer: impl Fn(&Seen, SocketAddr, SocketAddr) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let api = Upstream::start();
        let proxy = Builder::for_forward_auth()
            .config(&format!(
                "{config}\n[service]\nbase_url = 'https://auth.example.com'\npublic_api_urls = ['{ORIGIN}']"
            ))
            .start();
        let (decisions, forwards) = (proxy.forward_auth(), api.authority().parse().unwrap());
        let gateway = Upstream::replying(move |seen| answer(seen, decisions, forwards));
        let caller = proxy.somebody();
        Self {
            gateway,
            api,
            proxy,
            caller,
        }
    }

    fn external_auth(config: &str, auth: ExternalAuth) -> Self {
        Self::with(config, move |seen, decisions, api| {
            auth.answer(seen, decisions, api)
        })
    }

    fn call(&self, call: &Call) -> Answer {
        let mut connection = Connection::to(self.gateway.authority().parse().unwrap());
        connection.send(&call.wire(ORIGIN, HOST));
        connection.answer(&call.method)
    }

    #[track_caller]
    fn passes(&self, call: &Call) -> Seen {
        let before = self.api.count();
        let answer = self.call(call);
        assert_eq!(answer.status, 200, "{answer:?}\n{}", self.proxy.log());
        assert_eq!(self.api.count(), before + 1);
        self.api.last_request()
    }

    #[track_caller]
    fn refuses(&self, call: &Call, status: u16) -> Answer {
        let before = self.api.count();
        let answer = self.call(call);
        assert_eq!(answer.status, status, "{call:?}: {answer:?}");
        assert_eq!(self.api.count(), before, "{call:?}");
        answer
    }

    /// The facts that hold of both.
    fn decides(&self) {
        let caller = &self.caller;
        let target = "/a%2Fb//c;e/%7E?q=a%20b&empty=&b=2&b=1";
        for call in [
            Call::get(target),
            Call::post(target).json("{}"),
            Call::post(target).form("a=1&b=%20x"),
            Call::post(target).json(JSON),
        ] {
            let is_hashed = format!("{call:?}").contains(&format!("{:?}", JSON.as_bytes()));
            let mut call = call.of(caller);
            if is_hashed {
                call = call.parameter("oauth_body_hash", HASH);
            }
            let call = [
                "X-Auth-User",
                "X-Auth-Kind",
                "X-Auth-Permissions",
                "X-Request-Id",
            ]
            .iter()
            .fold(call, |call, name| call.header(name, "forged"));
            let wire = call.wire(ORIGIN, HOST);
            let mut connection = Connection::to(self.gateway.authority().parse().unwrap());
            connection.send(&wire);
            connection.answer("GET").has_status(200);
            let seen = self.api.last_request();
            assert_eq!(seen.target, target);
            assert_eq!(seen.fields.all("x-auth-user"), [&caller.user.id]);
            assert_eq!(seen.fields.all("x-auth-kind"), ["consumer"]);
            assert_eq!(seen.fields.all("x-auth-permissions").concat(), "");
            assert!(!seen.fields.has("authorization"), "{seen:?}");
            let ids = seen.fields.all("x-request-id");
            assert!(ids.len() == 1 && ids[0] != "forged", "{seen:?}");
            self.proxy
                .logs(&["verdict=\"forwarded\"", &format!("request_id={}", ids[0])]);
            let before = self.api.count();
            connection.send(&wire);
            let answer = connection.answer("GET");
            assert_eq!(answer.status, 401);
            has(
                answer.header("WWW-Authenticate").unwrap(),
                &["OAuth realm="],
            );
            assert_eq!(self.api.count(), before);
        }
        self.passes(
            &Call::post("/form")
                .of(caller)
                .form("a=1")
                .placed(Placement::Body),
        );
        let form = |signed: &str| {
            Call::post("/form")
                .of(caller)
                .signs_body(signed)
                .form("a=1")
        };
        for call in [
            Call::get("/"),
            Call::get("/").of(caller).key("wrong"),
            form(""),
            form("a=2"),
            Call::post("/hash")
                .of(caller)
                .json("{}")
                .parameter("oauth_body_hash", HASH),
            Call::post("/form").of(caller).header("Content-Type", FORM),
        ] {
            self.refuses(&call, 401);
        }
        self.refuses(&Call::get("/x").of(caller).header("Upgrade", "h2c"), 404);
    }
}

#[test]
fn a_gateway_of_kubernetes_forwards_only_permitted_requests() {
    let config = build(&["gateway-api"])[0]["configuration"]
        .as_str()
        .unwrap()
        .parse();
    let config: toml::Table = config.unwrap();
    let cut = format!("{}B", ExternalAuth::of_manifests(true).max_size);
    assert_eq!(config["forward_auth"]["body_bytes"].as_str(), Some(&*cut));
    let config = format!("forward_auth.body_bytes = '{cut}'");
    for cuts in [false, true] {
        let auth = ExternalAuth::of_manifests(cuts);
        let stage = Stage::external_auth(&config, auth.clone());
        stage.decides();
        // A form whose beginning alone is signed.
        let form = format!("a={}&role=admin", "b".repeat(auth.max_size - 2));
        let signed = &form[..auth.max_size];
        let large = Call::post("/form").of(&stage.caller);
        let large = large.signs_body(signed).form(&form);
        let answer = stage.refuses(&large, if cuts { 401 } else { 413 });
        assert!(
            !cuts
                || answer
                    .told("oauth_problem_advice")
                    .unwrap()
                    .contains("65534")
        );
        // What the key is for: such a form would pass without it.
        if cuts {
            let unwarned = Stage::external_auth("", auth);
            let large = Call::post("/form").of(&unwarned.caller);
            unwarned.passes(&large.signs_body(signed).form(&form));
        }
    }
}

/// What `docs/gateways.md` warns of.
#[test]
fn a_gateway_of_kubernetes_has_the_traps_that_the_page_names() {
    let auth = ExternalAuth::of_manifests(false);
    let without = |change: &dyn Fn(&mut ExternalAuth)| {
        let mut auth = auth.clone();
        change(&mut auth);
        Stage::external_auth("", auth)
    };
    // Content-Type that is not listed: a form that is not signed passes, unless countersign sees that there is a body.
    let stage = without(&|auth| auth.allowed.retain(|name| name != "Content-Type"));
    let form = |stage: &Stage| Call::post("/").of(&stage.caller).signs_body("").form("a=1");
    let answer = stage.refuses(&form(&stage), 401);
    has(
        &answer.told("oauth_problem_advice").unwrap(),
        &["Content-Type"],
    );
    let stage = without(&|auth| {
        auth.allowed.retain(|name| name != "Content-Type");
        auth.max_size = 0;
    });
    assert_eq!(stage.passes(&form(&stage)).text(), "a=1");
    // Without the list of response headers the API gets all of them.
    let stage = without(&|auth| auth.copied.clear());
    let seen = stage.passes(&Call::get("/").of(&stage.caller));
    assert_eq!(seen.header("Cache-Control"), Some("no-store"));
    // Patterns of names cannot be dropped.
    let stage = Stage::external_auth("", auth.clone());
    let call = Call::get("/").of(&stage.caller);
    let seen = stage.passes(
        &call
            .header("X_Auth_User", "root")
            .header("X-Original-URL", "/admin"),
    );
    assert_eq!(seen.header("X_Auth_User"), Some("root"));
    assert!(seen.fields.has("X-Original-URL"));
    // An upgrade whose field is not listed is not seen.
    let upgrade = |stage: &Stage| Call::get("/").of(&stage.caller).header("Upgrade", "h2c");
    stage.refuses(&upgrade(&stage), 404);
    let stage = without(&|auth| auth.allowed.retain(|name| name != "Upgrade"));
    assert!(stage.passes(&upgrade(&stage)).fields.has("Upgrade"));
}

#[test]
fn apisix_forwards_only_permitted_requests() {
    let routes = apisix_routes();
    assert!(routes[0].sends_body && !routes[1].sends_body);
    let stage = Stage::with(
        "listen.trusted_proxies = ['127.0.0.1']",
        move |seen, decisions, api| {
            let has = |name: &str, part: &str| {
                let value = seen.header(name).unwrap_or_default();
                value.to_ascii_lowercase().contains(part)
            };
            let is_covered = has("content-type", "x-www-form-urlencoded")
                || has("authorization", "oauth_body_hash");
            routes[usize::from(!is_covered)].answer(seen, decisions, api)
        },
    );
    stage.decides();
    let seen = stage.passes(
        &Call::get("/")
            .of(&stage.caller)
            .header("X_Auth_User", "root"),
    );
    assert!(!seen.fields.has("X_Auth_User"), "{seen:?}");
    // APISIX passes both Transfer-Encoding and the body on: never taken for whole.
    let chunked = Call::post("/")
        .of(&stage.caller)
        .header("Content-Type", FORM);
    let before = stage.api.count();
    let mut connection = Connection::to(stage.gateway.authority().parse().unwrap());
    connection.send(&chunked.chunked(&[b"a=1"]).wire(ORIGIN, HOST));
    let answer = connection.try_answer("POST");
    assert!(!matches!(answer, Ok(Some(answer)) if answer.status == 200));
    assert_eq!(stage.api.count(), before);
}
