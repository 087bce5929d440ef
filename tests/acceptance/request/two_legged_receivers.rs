//! What programs need that receive two-legged signed calls: tools of learning platforms, outcome services, partners' webhooks.
//!
//! Promise (Permissions and identity): Forwarded parameters, pinned parameters and demanded body hashes count only if the
//! signature covers them.

use crate::support::{
    Call, Placement, Scene,
    gate::WAYS,
    has, now,
    proxy::{Consumer, Proxy},
};

/// An operation for calls without a token, and one that demands a token.
const TWO_LEGGED: &str = "operation = [
    { path = '/launch', access = ['application'] },
    { path = '/orders', access = ['consumer'] },
]";

#[test]
fn empty_oauth_token_is_as_if_absent_on_two_legged_calls() {
    let Scene { api, proxy, caller } = Scene::with(TWO_LEGGED);
    let call = |target: &str| {
        let call = Call::post(target).form("user_id=7").by(&caller.consumer);
        call.parameter("oauth_token", "")
    };
    for placement in [Placement::Header, Placement::Query, Placement::Body] {
        proxy.passes(call("/launch").placed(placement));
        let seen = api.last_request();
        assert_eq!(seen.header("x-auth-kind"), Some("application"));
        let target = seen.target.trim_end_matches('?');
        assert_eq!((target, &*seen.text()), ("/launch", "user_id=7"));
    }
    // It is signed as it was sent, and a nonce is used for both spellings.
    let unsigned = Call::post("/launch").by(&caller.consumer);
    proxy.rejects(
        unsigned.spoiled("oauth_token", ""),
        401,
        "signature_invalid",
    );
    let time = now().to_string();
    let same = |call: Call| {
        let call = call.parameter("oauth_nonce", "once");
        call.parameter("oauth_timestamp", &time)
    };
    proxy.passes(same(call("/launch")));
    let again = Call::post("/launch").by(&caller.consumer);
    proxy.rejects(same(again), 401, "nonce_used");
    // Where a token is needed there is none.
    let count = api.count();
    for placement in [Placement::Header, Placement::Body] {
        proxy.rejects(call("/orders").placed(placement), 401, "token_rejected");
    }
    proxy.rejects(call("/unlisted"), 401, "token_rejected");
    assert_eq!(api.count(), count);
}

/// A request of this call whose signature has a `+`, and the same with the `+` as it is, which a query or form reads as a space.
fn bare_plus(proxy: &Proxy, call: &Call) -> (String, String) {
    let wire = std::iter::repeat_with(|| String::from_utf8(proxy.wire(call)).unwrap());
    let signature = |wire: &String| {
        let (_, rest) = wire.split_once("oauth_signature=").unwrap();
        rest.split(['&', ' ', '\r']).next().unwrap().to_owned()
    };
    let mut found = wire.filter(|wire| signature(wire).contains("%2B"));
    let escaped = found.next().unwrap();
    let sent = signature(&escaped);
    let bare = escaped.replace(&sent, &sent.replace("%2B", "+"));
    (escaped, bare)
}

#[test]
fn a_space_in_a_signature_is_a_plus_that_was_not_escaped() {
    let Scene { api, proxy, caller } = Scene::with(TWO_LEGGED);
    let call = Call::post("/launch").json("{}").by(&caller.consumer);
    let call = call.placed(Placement::Query);
    let send = |wire: &str| {
        let mut connection = proxy.connect();
        connection.send(wire.as_bytes());
        connection.answer("POST")
    };
    let (_, bare) = bare_plus(&proxy, &call);
    send(&bare).has_status(200);
    assert_eq!(api.last_request().target, "/launch?");
    // It is the same request: its nonce is used now.
    send(&bare.replace('+', "%2B")).is(401, "nonce_used");
    // A space is nothing but a plus.
    let (_, bare) = bare_plus(&proxy, &call);
    for wrong in [bare.replace('+', "%2F"), bare.replace('+', "++")] {
        send(&wrong).is(401, "signature_invalid");
    }
    // The doctor still tells the developer.
    let target = bare.split(' ').nth(1).unwrap();
    let url = format!("{}{target}", proxy.origin());
    let type_field = "Content-Type: application/json";
    let arguments = [
        "explain", "POST", &url, "--header", type_field, "--data", "{}",
    ];
    let explained = proxy.command(&arguments).done();
    for part in ["the signature matches", "signature_not_encoded"] {
        assert!(explained.stdout.contains(part), "{explained:?}");
    }
    let json = proxy
        .command(&[&arguments[..], &["--json"]].concat())
        .done()
        .json();
    assert_eq!(json["matches"], true);
    let diagnosis = json["diagnosis"].as_str().unwrap();
    assert!(
        diagnosis.starts_with("signature_not_encoded"),
        "{diagnosis}"
    );
}

/// A launch that posts everything in its form, as learning platforms do.
fn launch(consumer: &Consumer, form: &str) -> Call {
    let call = Call::post("/launch").form(form).by(consumer);
    let call = call.placed(Placement::Body);
    call.parameter("oauth_callback", "about:blank")
}

#[test]
fn an_operation_says_whether_its_credentials_are_forwarded() {
    let Scene { api, proxy, caller } = Scene::with(
        "operation = [
            { path = '/launch', access = ['application'], forward_authorization = true },
            { path = '/orders', access = ['application', 'consumer'] },
        ]",
    );
    proxy.passes(launch(&caller.consumer, "user_id=7"));
    let seen = api.last_request();
    assert_eq!(seen.header("x-auth-consumer"), Some(&*caller.consumer.key));
    let form = seen.text();
    assert!(form.starts_with("user_id=7&oauth_consumer_key="), "{form}");
    for name in ["oauth_callback=about%3Ablank", "oauth_signature="] {
        assert!(form.contains(name), "{form}");
    }
    proxy.passes(Call::post("/launch").by(&caller.consumer));
    let sent = api.last_request();
    assert!(sent.header("authorization").is_some());
    proxy.passes(Call::post("/orders").by(&caller.consumer));
    assert_eq!(api.last_request().header("authorization"), None);
    // And the other way round.
    let Scene { api, proxy, caller } = Scene::with(
        "identity.forward_authorization = true
        operation = [
            { path = '/orders', forward_authorization = false },
            { path = '/{*rest}' },
        ]",
    );
    for (path, is_there) in [("/orders", false), ("/others", true)] {
        proxy.passes(Call::get(path).of(&caller));
        let sent = api.last_request();
        assert_eq!(sent.header("authorization").is_some(), is_there, "{path}");
        proxy.passes(Call::get(path).of(&caller).placed(Placement::Query));
        let target = api.last_request().target;
        assert_eq!(target.contains("oauth_signature"), is_there, "{target}");
    }
}

const HEADERS: &str = "operation = [
    { path = '/launch', access = ['application'], headers = { X-LTI-Context = 'context_id', X-LTI-Name = 'full name' } },
    { path = '/{*rest}', access = ['application', 'consumer', 'anonymous'] },
]";

#[test]
fn signed_parameters_go_on_as_header_fields() {
    let Scene { api, proxy, caller } = Scene::with(HEADERS);
    let consumer = &caller.consumer;
    let seen = |name: &str| api.last_request().header(name).map(str::to_owned);
    proxy.passes(launch(consumer, "context_id=c1&full+name=Ada+L.&other=1"));
    assert_eq!(seen("x-lti-context").as_deref(), Some("c1"));
    assert_eq!(seen("x-lti-name").as_deref(), Some("Ada L."));
    // From query and header too.
    let call = Call::post("/launch?context_id=c2").by(consumer);
    proxy.passes(call);
    assert_eq!(seen("x-lti-context").as_deref(), Some("c2"));
    assert_eq!(seen("x-lti-name"), None);
    // What is not fit for a field, or could be read in two ways, is left out; the call goes on.
    let long = format!("context_id={}", "a".repeat(4_097));
    for form in [
        "context_id=a%0D%0AX-Auth-User:+root",
        "context_id=a%00",
        "context_id=+a",
        "context_id=a&context_id=b",
        "CONTEXT_ID=a",
        &long,
    ] {
        proxy.passes(launch(consumer, form));
        assert_eq!(seen("x-lti-context"), None, "{form}");
        assert_eq!(seen("x-auth-user"), None, "{form}");
    }
    proxy.passes(launch(consumer, "context_id=a&context_id=a"));
    assert_eq!(seen("x-lti-context").as_deref(), Some("a"));
    // A caller's own copy never arrives, on no path and in no spelling.
    for name in ["X-LTI-Context", "x_lti_context", "X-Lti.Context"] {
        let forged = Call::post("/launch").by(consumer).header(name, "forged");
        proxy.passes(forged);
        let fields = format!("{:?}", api.last_request());
        assert!(!fields.contains("forged"), "{fields}");
        for call in [Call::get("/x").of(&caller), Call::get("/x")] {
            proxy.passes(call.header(name, "forged"));
            let fields = format!("{:?}", api.last_request());
            assert!(!fields.contains("forged"), "{fields}");
        }
    }
}

/// As Canvas posts a launch URL with a query.
#[test]
fn launch_that_signs_its_query_once_passes_only_where_allowed() {
    let config = "operation = [
        { path = '/launch', access = ['application'], forward_authorization = true, headers = { X-Course = 'course' } },
    ]";
    let Scene { api, proxy, caller } = Scene::with(config);
    let canvas = proxy.consumer_with("Canvas", "--accept repeats_once");
    let call = |consumer: &Consumer| {
        let call = Call::post("/launch?course=a%20b&lang=en");
        let call = call.form("user_id=7&course=a+b&lang=en").by(consumer);
        let call = call.placed(Placement::Body).signs_target("/launch");
        call.parameter("oauth_callback", "about:blank")
    };
    proxy.passes(call(&canvas));
    let seen = api.last_request();
    assert_eq!(seen.header("x-course"), Some("a b"));
    let form = seen.text();
    assert!(
        form.starts_with("user_id=7&course=a+b&lang=en&oauth_"),
        "{form}"
    );
    // Somebody on the way gets no other course to the tool.
    let changed = Call::post("/launch?course=z&lang=en").form("course=a&lang=en");
    let changed = changed.by(&canvas).placed(Placement::Body);
    proxy.passes(changed.signs_target("/launch"));
    assert_eq!(api.last_request().header("x-course"), Some("a"));
    assert!(!api.last_request().target.contains("course=z"));
    let count = api.count();
    proxy.rejects(call(&caller.consumer), 401, "signature_invalid");
    assert_eq!(api.count(), count);
    proxy.logs(&["signature_invalid", "needs=\"repeats_once\""]);
}

#[test]
fn explain_names_the_fields_and_credentials_that_are_forwarded() {
    let config = "operation = [
        { path = '/launch', access = ['application'], forward_authorization = true,
          headers = { X-LTI-Context = 'context_id', X-LTI-Role = 'role', X-LTI-Name = 'name' } },
        { path = '/orders', access = ['application'] },
    ]";
    let (_api, proxy, caller) = Scene::with(config).into_parts();
    let explained = |target: &str, key: Option<&str>| {
        let call = Call::post(target).by(&caller.consumer);
        let call = match key {
            Some(key) => call.key(key),
            None => call,
        };
        proxy.explain(&call).stdout
    };
    let target = "/launch?context_id=c1&role=a&role=b&name=%20x";
    let told = explained(target, None);
    let (_, told) = told
        .split_once("If it is accepted, the API gets\n")
        .unwrap();
    let left_out = |field: &str, parameter: &str| {
        format!(
            "  no {field}: the signature covers no {parameter}, or two values of it, or one that does not fit in a header field\n"
        )
    };
    let expected = [
        "  x-lti-context: c1\n",
        &left_out("x-lti-name", "name"),
        &left_out("x-lti-role", "role"),
        "  the credentials go on to the API\n",
    ];
    assert_eq!(told, expected.concat());
    // It depends on a right signature, and on the rules of the operation.
    for told in [
        explained(target, Some("wrong&")),
        explained("/orders?context_id=c1", None),
    ] {
        assert!(!told.contains("the API gets"), "{told}");
    }
}

#[test]
fn a_parameter_that_is_not_signed_is_in_no_header_field() {
    let Scene { api, proxy, .. } = Scene::with(HEADERS);
    let seen = |name: &str| api.last_request().header(name).map(str::to_owned);
    let legacy = proxy.consumer_with("Old", "--dialect legacy");
    let call = Call::post("/launch?context_id=forged").by(&legacy);
    proxy.passes(call.signed_as_described());
    assert_eq!(seen("x-lti-context"), None);
    // Of copies, only the one that was signed.
    let once = proxy.consumer_with("Canvas", "--accept repeats_once");
    let call = Call::post("/launch?context_id=forged").form("context_id=c1");
    proxy.passes(call.by(&once).signs_target("/launch"));
    assert_eq!(seen("x-lti-context").as_deref(), Some("c1"));
    // An observed call has no identity, whatever its signature.
    let observed = format!("signature.enforcement = 'observe'\n{HEADERS}");
    let Scene { api, proxy, caller } = Scene::with(&observed);
    for key in [None, Some("wrong&")] {
        let call = launch(&caller.consumer, "context_id=c1");
        let call = match key {
            Some(key) => call.key(key),
            None => call,
        };
        proxy.passes(call);
        assert_eq!(api.last_request().header("x-lti-context"), None);
    }
}

#[test]
fn gateway_that_forwards_requests_itself_gets_each_field() {
    let config = format!("forward_auth.listen = '127.0.0.1:0'\n{HEADERS}");
    let Scene { proxy, caller, .. } = Scene::with(&config);
    let launch = Call::post("/launch?context_id=c1").by(&caller.consumer);
    let other = Call::get("/x?context_id=c1").of(&caller);
    for (call, context) in [(launch, "c1"), (other, "")] {
        for way in WAYS {
            let wire = proxy.wire(&call);
            let answer = proxy.asks_by(way, &proxy.origin(), &wire);
            answer.has_status(200);
            assert_eq!(answer.fields.all("X-LTI-Context"), [context], "{answer:?}");
            assert_eq!(answer.fields.all("X-LTI-Name"), [""], "{answer:?}");
        }
    }
}

#[test]
fn a_pinned_parameter_has_its_value_in_every_call() {
    let Scene { api, proxy, caller } = Scene::with(TWO_LEGGED);
    let options = "--pinned school=north%20east --pinned school=south";
    let school = proxy.consumer_with("School", options);
    for form in [
        "school=north+east",
        "school=south&a=b",
        "school=south&school=south",
    ] {
        proxy.passes(launch(&school, form));
    }
    let count = api.count();
    for form in [
        "school=west",
        "school=north",
        "school=",
        "a=b",
        "school=south&school=west",
        "School=south",
    ] {
        let answer = proxy.rejects(launch(&school, form), 401, "consumer_key_refused");
        let advice = answer.form("oauth_problem_advice").unwrap();
        assert!(advice.contains("school"), "{advice}");
        // Only the owner of the secret reads that.
        let forged = launch(&school, form).key("wrong&");
        proxy.rejects(forged, 401, "signature_invalid");
    }
    // What is not signed is no value.
    let legacy = proxy.consumer_with("Old", "--dialect legacy --pinned school=south");
    let call = Call::post("/launch?school=south").by(&legacy);
    proxy.rejects(call.signed_as_described(), 401, "consumer_key_refused");
    assert_eq!(api.count(), count);
    proxy.passes(launch(&caller.consumer, "school=west"));
    // Calls with a token, too; and a change counts at once.
    let token = proxy.token(&school, &caller.user);
    let order = |school_id: &str| {
        let call = Call::get(&format!("/orders?school={school_id}"));
        call.by(&school).with(&token)
    };
    proxy.passes(order("south"));
    proxy.rejects(order("west"), 401, "consumer_key_refused");
    let update = ["consumer", "update", &school.key, "--pinned", "school=west"];
    proxy.command(&update).done();
    crate::support::until("the change counts", || proxy.status(order("west")) == 200);
    proxy.rejects(order("south"), 401, "consumer_key_refused");
    for wrong in ["school", "=a", "oauth_token=a", "a=%zz"] {
        let refused = proxy.command(&["consumer", "update", &school.key, "--pinned", wrong]);
        assert_eq!(refused.code(), Some(2), "{refused:?}");
    }
}

#[test]
fn no_spelling_of_a_pinned_name_has_another_value() {
    let Scene { api, proxy, .. } = Scene::with(
        "operation = [
            { path = '/launch', access = ['application'] },
            { path = '/header', access = ['application'], headers = { X-School = 'school_id' } },
        ]",
    );
    let school = proxy.consumer_with("School", "--pinned school_id=north");
    let array = proxy.consumer_with("Array", "--pinned user[school]=north");
    // What PHP, Rack, Express or ASP.NET read as the parameter.
    for other in [
        "+school_id=evil",
        "%09school_id=evil",
        "school_id%00x=evil",
        "school_id[]=evil",
        "school_id%5B0%5D=evil",
        "school.id=evil",
        "school+id=evil",
        "school[id=evil",
        "[school_id]=evil",
        "School_ID=evil",
        "%C5%BFchool_id=evil",
        "school_id=evil",
        // Another spelling is rejected even with the value.
        "school_id[]=north",
    ] {
        for form in [
            format!("school_id=north&{other}"),
            format!("{other}&school_id=north"),
        ] {
            proxy.rejects(launch(&school, &form), 401, "consumer_key_refused");
            let query = Call::get(&format!("/launch?{form}")).by(&school);
            proxy.rejects(query, 401, "consumer_key_refused");
        }
        let both = Call::post(&format!("/launch?{other}")).form("school_id=north");
        proxy.rejects(both.by(&school), 401, "consumer_key_refused");
    }
    for form in [
        "user[school]=north&user[school][]=evil",
        "user[school]=north&User[+school]=evil",
        "user.school=evil",
    ] {
        proxy.rejects(launch(&array, form), 401, "consumer_key_refused");
    }
    // A value where the API does not read it.
    let parts =
        "--b\r\nContent-Disposition: form-data; name=\"school_id\"\r\n\r\nevil\r\n--b--\r\n";
    let multipart =
        |path: &str| Call::post(path).body("multipart/form-data; boundary=b", parts.as_bytes());
    let json = |path: &str| Call::post(path).json("{\"school_id\":\"evil\"}");
    let hash = crate::support::signer::body_hash::<sha1::Sha1>(b"{\"school_id\":\"evil\"}");
    for call in [
        Call::post("/launch?school_id=north")
            .form("a=b")
            .by(&school),
        Call::post("/launch")
            .form("a=b")
            .by(&school)
            .parameter("school_id", "north"),
        Call::get("/launch")
            .by(&school)
            .parameter("school_id", "north"),
        multipart("/launch?school_id=north").by(&school),
        json("/launch?school_id=north").by(&school),
        json("/launch?school_id=north")
            .by(&school)
            .parameter("oauth_body_hash", &hash),
        Call::post("/launch?school_id=north")
            .bytes(b"school_id=evil")
            .by(&school),
        json("/header?school_id=south").by(&school),
    ] {
        let answer = proxy.rejects(call, 401, "consumer_key_refused");
        assert!(
            answer
                .form("oauth_problem_advice")
                .unwrap()
                .contains("school_id")
        );
    }
    api.saw_nothing();
    // Where the API has the value in a header field, it may have any body.
    for call in [
        json("/header?school_id=north"),
        multipart("/header?school_id=north"),
    ] {
        proxy.passes(call.by(&school));
        assert_eq!(api.last_request().header("x-school"), Some("north"));
    }
    for form in [
        "school_id=north&school_id2=x&schoolid=y&x_school_id=z",
        "id=1&school_id=north",
    ] {
        proxy.passes(launch(&school, form));
    }
    proxy.passes(launch(&array, "user[school]=north&user[name]=a&user=b"));
    proxy.passes(Call::get("/launch?school_id=north").by(&school));
    proxy.passes(Call::post("/launch?school_id=north").bytes(b"").by(&school));
}

const HASHED: &str = "operation = [
    { path = '/outcomes', access = ['application'], body_hash = 'required' },
    { path = '/launch', access = ['application'] },
]";

#[test]
fn body_hash_can_be_required_by_an_operation_or_of_a_consumer() {
    let Scene { api, proxy, caller } = Scene::with(HASHED);
    let strict = proxy.consumer_with("Strict", "--body-hash required");
    let xml = b"<imsx_POXEnvelopeRequest/>";
    let post = |path: &str, consumer: &Consumer| {
        Call::post(path).body("application/xml", xml).by(consumer)
    };
    let hash = crate::support::signer::body_hash::<sha1::Sha1>(xml);
    for (path, consumer) in [("/outcomes", &caller.consumer), ("/launch", &strict)] {
        let count = api.count();
        let answer = proxy.rejects(post(path, consumer), 400, "parameter_absent");
        answer.tells("oauth_parameters_absent", "oauth_body_hash");
        let forged = post(path, consumer).key("wrong&");
        proxy.rejects(forged, 401, "signature_invalid");
        for body in [
            Call::post(path).bytes(xml),
            Call::post(path).chunked(&[xml]),
        ] {
            proxy.rejects(body.by(consumer), 400, "parameter_absent");
        }
        assert_eq!(api.count(), count);
        proxy.passes(post(path, consumer).parameter("oauth_body_hash", &hash));
        assert_eq!(api.last_request().body, xml);
        let wrong = post(path, consumer).parameter("oauth_body_hash", "AAAA");
        proxy.rejects(wrong, 401, "signature_invalid");
        // A form is signed itself, and nothing has nothing to sign.
        proxy.passes(Call::post(path).form("a=b").by(consumer));
        proxy.passes(Call::get(path).by(consumer));
        proxy.passes(Call::post(path).bytes(b"").by(consumer));
    }
    proxy.passes(post("/launch", &caller.consumer));
    proxy.logs(&[
        "parameter_absent",
        "parameters=oauth_body_hash",
        &strict.key,
    ]);
    // The doctor says it too.
    let explained = proxy.explain(&post("/outcomes", &caller.consumer));
    has(&explained.stdout, &["parameter_absent"]);
}
