//! `lti-key-sign`, against signs that Python's standard library makes.
//!
//! Promise (Permissions and identity): The claim `oauth_consumer_key_sign` of LTI 1.3 counts only if the named key's secret
//! made it for this launch. Also in `src/operator/manage/consumers/lti_key_sign.rs`.

use std::{fs, process::Command};

use serde_json::{Value, json};

use crate::{
    commands::workspace::{Ended, Workspace},
    support::text::has,
};

/// Reads a secret and the claims of a launch, and prints its id_token with the claim, without a signature.
const PLATFORM: &str = r#"
import base64, hashlib, hmac, json, sys
secret, claims = sys.argv[1], json.loads(sys.argv[2])
old = claims["https://purl.imsglobal.org/spec/lti/claim/lti1p1"]
deployment = claims["https://purl.imsglobal.org/spec/lti/claim/deployment_id"]
text = "&".join([old["oauth_consumer_key"], deployment, claims["iss"], claims["aud"], str(claims["exp"]), claims["nonce"]])
old["oauth_consumer_key_sign"] = base64.b64encode(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()).decode()
parts = [json.dumps(it).encode() for it in ({"alg": "RS256"}, claims)]
print(".".join(base64.urlsafe_b64encode(it).decode().rstrip("=") for it in parts) + ".c2lnbmVk")
"#;

const EXP: u64 = 4_000_000_000;

fn claims(exp: u64) -> Value {
    json!({
        "iss": "https://lms.example",
        "aud": "tool-7",
        "exp": exp,
        "nonce": "n-1 é",
        "https://purl.imsglobal.org/spec/lti/claim/deployment_id": "school-4",
        "https://purl.imsglobal.org/spec/lti/claim/lti1p1": { "oauth_consumer_key": "north-east" },
    })
}

struct Tool {
    workspace: Workspace,
    secret: String,
}

impl Tool {
    fn new() -> Self {
        let workspace = Workspace::new();
        let added = workspace.json("consumer add --name School --key north-east");
        let secret = added["secret"].as_str().unwrap().to_owned();
        Self { workspace, secret }
    }

    fn id_token(&self, secret: &str, claims: &Value) -> String {
        let mut python = Command::new("python3");
        python.args(["-c", PLATFORM, secret, &claims.to_string()]);
        let made = python.output().unwrap();
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).unwrap()
    }

    fn checks(&self, text: &str) -> Ended {
        fs::write(self.workspace.path("launch"), text).unwrap();
        let ended = self.workspace.run("lti-key-sign launch");
        for said in [&ended.stdout, &ended.stderr] {
            assert!(!said.contains(&self.secret), "{said}");
        }
        ended
    }
}

#[test]
fn a_sign_by_the_secret_of_the_key_is_accepted() {
    let tool = Tool::new();
    let token = tool.id_token(&tool.secret, &claims(EXP));
    let said = tool.checks(&token).done().stdout;
    assert_eq!(
        said,
        "The platform has the secret of School (north-east).\n"
    );
    let told = tool.workspace.json("lti-key-sign launch");
    assert_eq!(told, json!({ "consumer": "north-east" }));
    // The one that is made here is the same.
    fs::write(tool.workspace.path("claims.json"), claims(EXP).to_string()).unwrap();
    let made = tool.workspace.run("lti-key-sign --make claims.json").done();
    let mut own = claims(EXP);
    own["https://purl.imsglobal.org/spec/lti/claim/lti1p1"]["oauth_consumer_key_sign"] =
        made.stdout.trim().into();
    tool.checks(&own.to_string()).done();
    // A secret in its grace is one that the platform may still have; after that it proves nothing.
    tool.workspace
        .run("consumer rotate-secret north-east --grace 1h")
        .done();
    tool.checks(&token).done();
    tool.workspace
        .run("consumer rotate-secret north-east --end-grace")
        .done();
    has(
        &tool.checks(&token).failed(1),
        &["was not made with the secret"],
    );
}

#[test]
fn everything_else_proves_nothing() {
    let tool = Tool::new();
    let by = |secret: &str, claims: &Value| tool.id_token(secret, claims);
    let with = |place: &str, value: Value| {
        let mut changed = claims(EXP);
        changed[place] = value;
        changed
    };
    const LTI1P1: &str = "https://purl.imsglobal.org/spec/lti/claim/lti1p1";
    let unknown = json!({ "oauth_consumer_key": "south-west" });
    for (text, code, problem) in [
        (
            by("another", &claims(EXP)),
            1,
            "was not made with the secret",
        ),
        (by("", &claims(EXP)), 1, "was not made with the secret"),
        (
            by(&tool.secret, &claims(1_551_290_856)),
            1,
            "expired at 2019-02-27",
        ),
        (
            by(&tool.secret, &with("nonce", "a&b".into())),
            1,
            "nonce has an &",
        ),
        (
            by(&tool.secret, &with(LTI1P1, unknown)),
            1,
            "no consumer has the key",
        ),
        (claims(EXP).to_string(), 1, "has no oauth_consumer_key_sign"),
        ("{}".to_owned(), 2, "not the claims of a launch"),
        ("{\"a".to_owned(), 2, "neither a JSON object nor a JWT"),
        ("a.b.c".to_owned(), 2, "neither a JSON object nor a JWT"),
        (String::new(), 2, "neither a JSON object nor a JWT"),
    ] {
        let line = tool.checks(&text).failed(code);
        has(&line, &[problem]);
    }
    let token = by(&tool.secret, &claims(EXP));
    tool.workspace.run("consumer disable north-east").done();
    has(&tool.checks(&token).failed(1), &["is disabled"]);
    // An empty secret is everybody's.
    let add = "consumer add --name Open --key open --accept empty_secret --secret";
    let mut words = Vec::from_iter(add.split(' '));
    words.push("");
    tool.workspace.run(&words).done();
    let open = by("", &with(LTI1P1, json!({ "oauth_consumer_key": "open" })));
    has(
        &tool.checks(&open).failed(1),
        &["no secret that proves anything"],
    );
    tool.workspace.run("lti-key-sign nowhere").failed(1);
}
