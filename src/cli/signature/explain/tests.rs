use std::{sync::Arc, time::Duration};

use clap::Parser;
use serde_json::Value;

use super::*;
use crate::{
    base::{clock::UnixTime, settings::Lifetime},
    oauth::{MethodSet, SignatureMethod},
    operator::explain::{KnownSecrets, Rules, ServerView, TokenRecord},
    records::values::record::{AccessToken, Consumer, Dialect},
    request::{
        policy::{access::Access, operations::Operations, settings::PathSettings},
        route::{
            FlowPaths,
            settings::{FlowAt, FlowSettings, Role},
        },
        verify::{
            Advice, VerifyRules,
            settings::{Enforcement, SignatureSettings, TokenSettings},
            tests::token,
        },
    },
};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    explain: ExplainArgs,
}

/// RFC 5849 §3.4.1.1 with the signature of its erratum 2550.
const RFC: [&str; 12] = [
    "POST",
    "http://example.com/request?b5=%3D%253D&a3=a&c%40=&a2=r%20b",
    "--header",
    "Authorization: OAuth realm=\"Example\", oauth_consumer_key=\"9djdj82h48djs9d2\", oauth_token=\"kkk9d7dh3k39sjv7\", \
     oauth_signature_method=\"HMAC-SHA1\", oauth_timestamp=\"137131201\", oauth_nonce=\"7d8f3e4a\", \
     oauth_signature=\"r6%2FTJjbCOr97%2F%2BUU0NsvSne7s5g%3D\"",
    "--header",
    "Content-Type: application/x-www-form-urlencoded",
    "--data",
    "c2&a3=2+q",
    "--consumer-secret",
    "j49sk3j29djd",
    "--token-secret",
    "dh893hdasih9",
];
const NORMALIZED: &str = "a2=r%20b&a3=2%20q&a3=a&b5=%3D%253D&c%40=&c2=&oauth_consumer_key=9djdj82h48djs9d2&oauth_nonce=7d8f3e4a&\
                          oauth_signature_method=HMAC-SHA1&oauth_timestamp=137131201&oauth_token=kkk9d7dh3k39sjv7";
const BASE_STRING: &str = "POST&http%3A%2F%2Fexample.com%2Frequest&a2%3Dr%2520b%26a3%3D2%2520q%26a3%3Da%26b5%3D%253D%25253D%26\
                           c%2540%3D%26c2%3D%26oauth_consumer_key%3D9djdj82h48djs9d2%26oauth_nonce%3D7d8f3e4a%26\
                           oauth_signature_method%3DHMAC-SHA1%26oauth_timestamp%3D137131201%26oauth_token%3Dkkk9d7dh3k39sjv7";

fn run(arguments: &[&str]) -> (u8, String, String) {
    run_with_store(arguments, &mut |_| {
        Err(CommandError::failed("the store is empty"))
    })
}

fn run_with_store(arguments: &[&str], lookup: &mut Lookup<'_>) -> (u8, String, String) {
    let Ok(command) = Command::try_parse_from([&["explain"], arguments].concat()) else {
        return (2, String::new(), String::new());
    };
    match command.explain.run(lookup, &mut &b"dh893hdasih9\n"[..]) {
        Ok(output) => (output.code, output.text, output.notes.join("\n")),
        Err(error) => (error.code, String::new(), error.report() + "\n"),
    }
}

/// Runs with `--json` and parses the one line.
fn json(arguments: &[&str]) -> Value {
    let (code, printed, errors) = run(&[arguments, &["--json"]].concat());
    assert_eq!(errors, "");
    assert_eq!(printed.lines().count(), 1);
    let told: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(code, u8::from(told["matches"] != true), "{told}");
    told
}

fn replaced<'a>(arguments: &[&'a str], at: usize, by: &'a str) -> Vec<&'a str> {
    let mut arguments = arguments.to_vec();
    arguments[at] = by;
    arguments
}

#[test]
fn explains_the_example_of_the_rfc() {
    let told = json(&RFC);
    let members: Vec<&String> = told.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        [
            "parameters",
            "normalized_parameters",
            "base_string",
            "expected_signature",
            "matches",
            "diagnosis",
            "needs",
            "launch",
            "forwarded",
            "previous_secret_until"
        ]
    );
    assert_eq!(told["normalized_parameters"], NORMALIZED);
    assert_eq!(told["base_string"], BASE_STRING);
    assert_eq!(told["expected_signature"], "r6/TJjbCOr97/+UU0NsvSne7s5g=");
    assert_eq!(told["matches"], true);
    assert_eq!(told["diagnosis"], Value::Null);
    let parameters = told["parameters"].as_array().unwrap();
    assert_eq!(parameters.len(), 11);
    assert!(parameters.contains(&serde_json::json!(["b5", "=%3D"])));
    assert!(parameters.contains(&serde_json::json!(["a3", "2 q"])));
    assert!(
        !parameters
            .iter()
            .any(|pair| pair[0] == "realm" || pair[0] == "oauth_signature")
    );
}

#[test]
fn prints_all_of_it_for_people_and_no_secret() {
    let (code, printed, _) = run(&RFC);
    assert_eq!(code, 0);
    for line in [
        "  query                 b5 = =%3D",
        "  form body             a3 = 2 q",
        "  Authorization header  oauth_nonce = 7d8f3e4a",
        "  not signed            realm = Example",
        &format!("  {NORMALIZED}"),
        &format!("  {BASE_STRING}"),
        "  <consumer secret: 12 bytes, percent-encoded>&<token secret: 12 bytes, percent-encoded>",
        "  the signature matches",
    ] {
        assert!(
            printed.lines().any(|other| other == line),
            "{line}\n{printed}"
        );
    }
    assert!(!printed.contains("j49sk3j29djd") && !printed.contains("dh893hdasih9"));
}

#[test]
fn names_the_mistake_and_shows_what_the_consumer_signed() {
    // Signed for POST, sent with PUT.
    let told = json(&replaced(&RFC, 0, "PUT"));
    assert_eq!(told["matches"], false);
    let diagnosis = told["diagnosis"].as_str().unwrap();
    assert!(diagnosis.starts_with("other_method: "), "{diagnosis}");
    let (_, printed, _) = run(&replaced(&RFC, 0, "PUT"));
    assert!(
        printed.contains("  the signature does not match\n")
            && printed.contains("  other_method: "),
        "{printed}"
    );
    assert!(
        printed.contains(&format!("The consumer signed\n  {BASE_STRING}\n")),
        "{printed}"
    );
}

#[test]
fn admits_that_it_knows_no_mistake() {
    let told = json(&replaced(&RFC, 9, "another secret"));
    assert_eq!(
        (told["matches"].clone(), told["diagnosis"].clone()),
        (Value::Bool(false), Value::Null)
    );
    assert_ne!(told["expected_signature"], "r6/TJjbCOr97/+UU0NsvSne7s5g=");
    assert!(
        run(&replaced(&RFC, 9, "another secret"))
            .1
            .contains("no known mistake")
    );
}

#[test]
fn a_body_of_another_type_is_not_signed() {
    let told = json(&replaced(&RFC, 5, "Content-Type: application/json"));
    assert_eq!(told["matches"], false);
    assert!(
        told["diagnosis"]
            .as_str()
            .unwrap()
            .starts_with("body_signed: "),
        "{told}"
    );
    assert_eq!(told["parameters"].as_array().unwrap().len(), 9);
}

#[test]
fn tells_why_a_request_is_refused_before_its_signature() {
    for [header, expected] in crate::text::rows(
        r#"
        Authorization: OAuth a=1                         | malformed Authorization header: a parameter value is not in double quotes
        Authorization: Bearer x                          | malformed Authorization header: the scheme is not OAuth
        Authorization: OAuth oauth_nonce="1", oauth_nonce="2" | given more than once: oauth_nonce
        Authorization: OAuth oauth_nonce="1"             | missing oauth_consumer_key&oauth_signature_method&oauth_signature&oauth_timestamp
        Authorization: OAuth oauth_version="2.0"         | unsupported oauth_version
        Authorization: OAuth oauth_version="2.0", oauth_timestamp="x", oauth_nonce="1", oauth_nonce="2" | given more than once: oauth_nonce; unsupported oauth_version; not a positive number of seconds: oauth_timestamp
        X-Other: x                                       | missing oauth_consumer_key&oauth_signature_method&oauth_signature&oauth_timestamp&oauth_nonce
    "#,
    ) {
        let arguments = replaced(&RFC, 3, header);
        let told = json(&arguments);
        assert_eq!(told["diagnosis"], expected);
        assert_eq!(told["matches"], false);
        let text = run(&arguments).1;
        assert!(expected.split("; ").all(|one| text.contains(one)), "{text}");
    }
}

#[test]
fn secrets_come_from_the_options_or_else_from_the_store() {
    assert_eq!(json(&replaced(&RFC, 11, "-"))["matches"], true);
    let mut times = 0;
    let (code, printed, _) = run_with_store(&RFC[..8], &mut |asked| {
        times += 1;
        let nonce = asked.nonce.unwrap();
        assert_eq!(nonce.consumer, b"9djdj82h48djs9d2");
        assert_eq!(nonce.token, b"kkk9d7dh3k39sjv7");
        assert_eq!(nonce.nonce, b"7d8f3e4a");
        assert_eq!(nonce.timestamp, 137_131_201);
        assert_eq!(asked.consumer_key, nonce.consumer);
        assert_eq!(asked.token, Some(nonce.token));
        Ok(KnownSecrets {
            consumer_secret: "j49sk3j29djd".into(),
            token_secret: "dh893hdasih9".into(),
            rsa_public_key: None,
            server: None,
        })
    });
    assert_eq!((code, times), (0, 1));
    assert!(printed.contains("the signature matches"));

    let (code, printed, errors) = run(&RFC[..8]);
    assert_eq!((code, printed.as_str()), (1, ""));
    assert!(
        errors.contains("consumer \"9djdj82h48djs9d2\"")
            && errors.ends_with(": the store is empty\n"),
        "{errors}"
    );
}

/// Runs with a server that knows the RFC's consumer at `now`, after `change`.
fn with_server(arguments: &[&str], now: u64, change: impl Fn(&mut KnownSecrets)) -> (u8, String) {
    let consumer = Consumer {
        secret: "j49sk3j29djd".into(),
        ..Consumer::for_tests("9djdj82h48djs9d2")
    };
    let token = AccessToken {
        secret: "dh893hdasih9".into(),
        ..token("kkk9d7dh3k39sjv7", consumer.key.as_str())
    };
    let server = ServerView {
        now: UnixTime(now),
        rules: Rules {
            verify: VerifyRules {
                signature: SignatureSettings {
                    methods: MethodSet::EMPTY.with(SignatureMethod::HmacSha1),
                    timestamp_window: Duration::from_secs(300),
                    default_dialect: Dialect::Rfc5849,
                    accept_description: true,
                    enforcement: Enforcement::Enforce,
                    advice: Advice::Hint,
                },
                tokens: TokenSettings {
                    request_ttl: Duration::from_secs(600),
                    access_ttl: Lifetime(None),
                    access_idle: Lifetime(None),
                    announce: None,
                },
                other_urls: Vec::new(),
                token_paths: Vec::new(),
            },
            flow: FlowPaths::new(
                &FlowSettings {
                    role: Role::Provider,
                    path: "/token".to_owned(),
                    aliases: false,
                    flow: None,
                    request_token_paths: Vec::new(),
                    authorize_paths: Vec::new(),
                    access_token_paths: Vec::new(),
                },
                FlowAt::Here,
                false,
            ),
            operations: Arc::new(Operations::new(
                Vec::new(),
                Access::NOBODY,
                true,
                PathSettings::STRICT,
            )),
            sunset: None,
        },
        consumer,
        token: Some(TokenRecord::Access(token)),
        is_token_unknown: false,
        is_key_of_user: false,
        nonce_used: Some(false),
    };
    let mut known = Some(KnownSecrets {
        consumer_secret: "j49sk3j29djd".into(),
        token_secret: "dh893hdasih9".into(),
        rsa_public_key: None,
        server: Some(server),
    });
    known.as_mut().map(change);
    let (code, printed, errors) = run_with_store(arguments, &mut |_| Ok(known.take().unwrap()));
    assert_eq!(errors, "");
    (code, printed)
}

/// As above, with a `change` of the server's view only.
fn with_view(now: u64, change: impl Fn(&mut ServerView)) -> (u8, String) {
    with_server(&RFC[..8], now, |known| {
        known.server.as_mut().map(&change);
    })
}

#[test]
fn ends_with_1_if_the_server_rejects_the_request() {
    const NOW: u64 = 137_131_201;
    let nothing = |_: &mut ServerView| {};
    assert_eq!(with_view(NOW + 300, nothing).0, 0);
    let (code, printed) = with_view(NOW + 301, nothing);
    assert_eq!(code, 1);
    assert!(
        printed.contains("The server rejects it\n  timestamp_refused: your clock is 301 s behind"),
        "{printed}"
    );
    assert!(printed.contains("the signature matches"), "{printed}");
    let (code, printed) = with_view(NOW, |server| server.consumer.rsa_only = true);
    assert_eq!(code, 1);
    assert!(printed.contains("restricted to its RSA key"), "{printed}");
    let (code, printed) = with_view(NOW, |server| server.nonce_used = Some(true));
    assert_eq!(code, 1);
    assert!(printed.contains("nonce_used: a request with"), "{printed}");
    let (code, printed) = with_view(NOW, |server| server.nonce_used = None);
    assert_eq!(code, 0);
    assert!(printed.contains("cannot be known here"), "{printed}");
    let put = replaced(&RFC[..8], 0, "PUT");
    assert_eq!(with_server(&put, NOW, |_| {}).0, 1);
}

#[test]
fn a_pinned_parameter_demands_a_form() {
    let pin = |server: &mut ServerView| server.consumer.pinned = vec!["a3=a".parse().unwrap()];
    let json = replaced(&RFC[..8], 5, "Content-Type: application/json");
    for (arguments, is_named) in [(&json[..], true), (&RFC[..8], false)] {
        let (code, printed) = with_server(arguments, 137_131_201, |known| {
            known.server.as_mut().map(pin);
        });
        let reason =
            "one value of a3, and another one could be in a body that is not a form: send a form";
        assert_eq!((code, printed.contains(reason)), (1, is_named), "{printed}");
    }
}

#[test]
fn lists_every_reason_of_the_server_in_its_order() {
    const NOW: u64 = 137_131_201;
    let header = RFC[3].replace("oauth_nonce", "oauth_body_hash=\"MTIz\", oauth_nonce");
    let arguments = replaced(&RFC[..8], 3, &header);
    let (code, printed) = with_server(&arguments, NOW + 301, |known| {
        let server = known.server.as_mut().unwrap();
        server.rules.verify.signature.methods = MethodSet::EMPTY;
        server.rules.verify.tokens.access_idle = Lifetime(Some(Duration::from_secs(1)));
        server.nonce_used = Some(true);
        server.consumer.enabled = false;
        server.consumer.rsa_only = true;
        server.consumer.pinned = vec!["guid=1".parse().unwrap()];
        if let Some(TokenRecord::Access(token)) = &mut server.token {
            token.issued_at = UnixTime(NOW);
            token.revoked_at = Some(UnixTime(NOW));
        }
    });
    assert_eq!(code, 1);
    let (_, reasons) = printed.split_once("The server rejects it\n").unwrap();
    let codes = reasons.lines().map_while(|line| line.strip_prefix("  "));
    let codes = Vec::from_iter(codes.map(|line| line.split(':').next().unwrap()));
    assert_eq!(
        codes,
        [
            "signature_method_rejected",
            "timestamp_refused",
            "signature_invalid",
            "signature_invalid",
            "nonce_used",
            "consumer_key_refused",
            "token_expired",
            "token_revoked",
            "consumer_key_refused",
        ],
        "{printed}"
    );
}

#[test]
fn ends_with_0_if_the_server_takes_the_signature_in_another_way() {
    const NOW: u64 = 137_131_201;
    let rotated = |until: u64| {
        with_server(&RFC[..8], NOW, |known| {
            let server = known.server.as_mut().unwrap();
            let old = std::mem::replace(&mut known.consumer_secret, "new".into());
            server.consumer.secret = known.consumer_secret.clone();
            server.consumer.previous_secret = Some((old, UnixTime(until)));
        })
    };
    let (code, printed) = rotated(NOW + 1);
    assert_eq!(code, 0);
    assert!(
        printed.contains("the server takes this signature"),
        "{printed}"
    );
    let line = "Consumer secret\n  signed with the previous one, which also verifies until 1974-";
    assert!(printed.contains(line), "{printed}");
    assert!(!printed.contains("no longer accepted"), "{printed}");
    let (code, printed) = rotated(NOW);
    assert_eq!(code, 1);
    assert!(printed.contains("  previous_secret: "), "{printed}");
}

#[test]
fn any_known_method_is_explained() {
    let header = RFC[3].replace("HMAC-SHA1", "hmac_sha512");
    let told = json(&replaced(&RFC, 3, &header));
    assert_eq!(told["expected_signature"].as_str().unwrap().len(), 88);
    let header = RFC[3].replace("HMAC-SHA1", "RSA-SHA1");
    let told = json(&replaced(&RFC, 3, &header));
    assert_eq!(
        (told["expected_signature"].clone(), told["matches"].clone()),
        (Value::Null, Value::Bool(false))
    );
}

#[test]
fn wrong_usage_ends_with_2() {
    for arguments in [
        &["GET"][..],
        &["GET", "example.com/x"],
        &["G T", "http://h/"],
        &["GET", "http://h/", "--header", "no colon"],
        &["GET", "http://h/", "--unknown"],
    ] {
        assert_eq!(run(arguments).0, 2, "{arguments:?}");
    }
}

#[test]
fn a_terminal_gets_no_control_characters() {
    let (_, printed, _) = run(&[
        "GET",
        "http://h/?a=%1b%5B2J%0a&b=%ff",
        "--consumer-secret",
        "s",
    ]);
    assert!(printed.contains("a = \\u{1b}[2J\\n"), "{printed}");
    assert!(
        printed
            .chars()
            .all(|character| character == '\n' || !character.is_control())
    );
}

/// The RFC's example with another method and signature, both secrets known.
fn signed(method: &str, signature: &str) -> String {
    RFC[3]
        .replace("HMAC-SHA1", method)
        .replace("r6%2FTJjbCOr97%2F%2BUU0NsvSne7s5g%3D", signature)
}

/// Everything that is printed, for people and as JSON.
fn printed(arguments: &[&str]) -> String {
    let (code, text, errors) = run(arguments);
    assert!(code < 2, "{errors}");
    format!("{text}{errors}{}", json(arguments))
}

#[test]
fn plaintext_is_explained_without_the_secrets() {
    let right = signed("PLAINTEXT", "j49sk3j29djd%26dh893hdasih9");
    let arguments = replaced(&RFC, 3, &right);
    let told = json(&arguments);
    assert_eq!(told["matches"], true);
    assert_eq!(
        told["expected_signature"],
        "<consumer secret>&<token secret>"
    );
    let text = run(&arguments).1;
    for line in [
        "Expected signature\n  <consumer secret>&<token secret>\n",
        "Signature sent\n  <hidden; --show-secrets shows it>\n",
        "oauth_signature = <hidden; --show-secrets shows it>\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let shown = [&arguments[..], &["--show-secrets"]].concat();
    assert_eq!(
        json(&shown)["expected_signature"],
        "j49sk3j29djd&dh893hdasih9"
    );
    let text = run(&shown).1;
    assert_eq!(
        text.matches("j49sk3j29djd&dh893hdasih9").count(),
        3,
        "{text}"
    );
}

#[test]
fn no_secret_is_printed_wherever_a_client_puts_it() {
    let in_url = "http://example.com/request?k=j49sk3j29djd&t=dh893hdasih9";
    for (at, by) in [
        // Under PLAINTEXT, in every spelling of its name, right and wrong.
        (3, signed("PLAINTEXT", "j49sk3j29djd%26dh893hdasih9")),
        (3, signed("plaintext", "j49sk3j29djd%26")),
        (3, signed("PLAINTEXT", "dh893hdasih9%26j49sk3j29djd")),
        (3, signed("PLAINTEXT", "j49sk3j29djd%2526dh893hdasih9")),
        // Under an unknown method, a missing one, and one that the client confuses with it.
        (3, signed("PLAIN", "j49sk3j29djd%26dh893hdasih9")),
        (
            3,
            signed("HMAC-SHA1", "j49sk3j29djd%26").replace("oauth_signature_method", "method"),
        ),
        (3, signed("HMAC-SHA1", "j49sk3j29djd%26dh893hdasih9")),
        (3, signed("HMAC-SHA1", "j49sk3j29djd")),
        (3, signed("RSA-SHA1", "j49sk3j29djd%26")),
        // In other parameters, which are signed: normalized parameters and base string have them too.
        (1, in_url.to_owned()),
        (7, "c2&a3=2+q&secret=j49sk3j29djd".to_owned()),
        (
            3,
            signed("HMAC-SHA1", "x").replace("realm=\"Example\"", "realm=\"dh893hdasih9\""),
        ),
        (
            3,
            signed("HMAC-SHA1", "x").replace("7d8f3e4a", "j49sk3j29djd"),
        ),
    ] {
        let text = printed(&replaced(&RFC, at, &by));
        for secret in ["j49sk3j29djd", "dh893hdasih9"] {
            assert!(!text.contains(secret), "{by}: {text}");
        }
    }
}

#[test]
fn somebody_elses_secrets_under_plaintext_are_hidden_as_well() {
    for method in ["PLAINTEXT", "HMAC-SHA1", "HMAC_SHA256"] {
        let header = signed(method, "foreign%20secret%26foreign%20token%27s");
        let text = printed(&replaced(&RFC, 3, &header));
        assert!(!text.contains("foreign"), "{method}: {text}");
    }
}

#[test]
fn secrets_with_escapes_are_hidden_in_every_encoding() {
    let secret = "a b/c&d=%C3";
    let url = "http://example.com/request?s=a%20b%2Fc%26d%3D%25C3";
    let arguments = replaced(&RFC, 1, url);
    let arguments = replaced(&arguments, 9, secret);
    let text = printed(&arguments);
    for spelling in ["a b/c", "a%20b%2Fc", "a%2520b%252Fc"] {
        assert!(!text.contains(spelling), "{spelling}: {text}");
    }
    assert!(text.contains("s = <consumer secret>"), "{text}");
    let shown = run(&[&arguments[..], &["--show-secrets"]].concat()).1;
    for spelling in ["a b/c", "a%20b%2Fc", "a%2520b%252Fc"] {
        assert!(shown.contains(spelling), "{spelling}: {shown}");
    }
}

#[test]
fn a_short_secret_hides_nothing_but_the_value_that_it_is() {
    let arguments = replaced(&RFC, 9, "a");
    let told = json(&arguments);
    let normalized = told["normalized_parameters"].as_str().unwrap();
    assert_eq!(
        normalized,
        NORMALIZED.replace("a3=a&", "a3=<consumer secret>&")
    );
    let base_string = told["base_string"].as_str().unwrap();
    let hidden = BASE_STRING.replace("a3%3Da%26", "a3%3D<consumer secret>%26");
    assert_eq!(base_string, hidden);
    // The value of oauth_version is known to everyone.
    let version = RFC[3].replace("oauth_nonce", "oauth_version=\"1.0\", oauth_nonce");
    let told = json(&replaced(&replaced(&RFC, 3, &version), 9, "1.0"));
    let normalized = told["normalized_parameters"].as_str().unwrap();
    assert!(normalized.ends_with("&oauth_version=1.0"), "{normalized}");
}

#[test]
fn a_value_whose_name_says_secret_is_hidden_without_being_known() {
    let url = "http://example.com/request?client_secret=foreign&x=y";
    let text = printed(&replaced(&RFC, 1, url));
    assert!(!text.contains("foreign"), "{text}");
    assert!(text.contains("client_secret%3D<hidden"), "{text}");
}
