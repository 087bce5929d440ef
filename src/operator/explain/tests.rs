//! The explanation accepts the signatures that the server accepts, and no others.

use std::sync::Arc;

use super::{
    examine::{Named, ServerCall},
    *,
};
use crate::{
    oauth::{BaseString, DeviationSet, SignatureMethod, SigningKey, percent, sign},
    records::{
        credentials::SecretAge,
        values::record::{Callback, Dialect, RequestTokenState},
    },
    request::{
        parse::signed::SignedRequest,
        policy::{access::Access, operations::Operations, settings::PathSettings},
        route::{
            FlowPaths,
            settings::{FlowAt, FlowSettings, Role},
        },
        verify::{
            SignatureCheck, VerifyError, VerifyRejection, VerifyRules,
            tests::{NOW, Setup, token},
        },
    },
};

/// The calls: purpose, path with query, and the names of token and verifier that they send.
const CALLS: [(Purpose, &str, Option<&str>, &str); 5] = [
    (Purpose::Api, "/things?", None, ""),
    (Purpose::Api, "/things?", Some("access"), ""),
    (Purpose::RequestToken, "/flow?mode=req_req_token&", None, ""),
    (
        Purpose::AccessToken,
        "/flow?mode=req_acc_token&",
        Some("request"),
        "v",
    ),
    (
        Purpose::OwnToken,
        "/flow?mode=revoke_token&",
        Some("access"),
        "",
    ),
];

/// A request, and how it is signed.
#[derive(Debug, Clone, Copy)]
struct Case<'a> {
    call: (Purpose, &'a str, Option<&'a str>, &'a str),
    query: &'a str,
    consumer: &'a str,
    secret: &'a str,
    method: SignatureMethod,
    selection: Selection,
    deviations: DeviationSet,
    /// The key is the consumer secret without `&` and token secret.
    alone: bool,
    nonce: usize,
}

/// The same rules, consumers and tokens for the server and for the explanation.
struct Stage {
    setup: Setup,
    flow: FlowPaths,
    operations: Arc<Operations>,
}

impl Stage {
    fn new() -> Self {
        let flow = FlowSettings {
            role: Role::Provider,
            path: "/flow".to_owned(),
            aliases: false,
            flow: None,
            request_token_paths: Vec::new(),
            authorize_paths: Vec::new(),
            access_token_paths: Vec::new(),
        };
        let operations = Operations::new(Vec::new(), Access::NOBODY, true, PathSettings::STRICT);
        Self {
            setup: Setup::opened(),
            flow: FlowPaths::new(&flow, FlowAt::Here, false),
            operations: Arc::new(operations),
        }
    }

    /// Registers a consumer, with an access token and a request token.
    async fn register(&self, consumer: &Consumer) {
        let key = consumer.key.as_str();
        let access = token(&format!("access of {key}"), key);
        let store = self.setup.store.store();
        self.setup.store.put_consumer(consumer);
        self.setup.store.put_access_token(&access);
        let request = RequestToken {
            token: format!("request of {key}"),
            secret: format!("secret of request of {key}").into(),
            consumer: consumer.key.clone(),
            callback: Callback::Oob,
            permissions: Vec::new(),
            issued_at: NOW,
            expires_at: UnixTime(NOW.0 + 600),
            state: RequestTokenState::Issued,
            wrong_verifiers: 0,
        };
        store.issue_request_token(request, 10).await.unwrap();
    }

    fn rules(&self, verify: &VerifyRules) -> Rules {
        Rules {
            verify: verify.clone(),
            flow: self.flow.clone(),
            operations: Arc::clone(&self.operations),
            sunset: None,
        }
    }

    /// The Authorization field of the call.
    fn field(&self, case: &Case<'_>) -> String {
        let (_, path, token, verifier) = case.call;
        let token = token.map(|token| format!("{token} of {}", case.consumer));
        let mut pairs = vec![
            ("oauth_consumer_key", case.consumer.to_owned()),
            ("oauth_signature_method", case.method.as_str().to_owned()),
            ("oauth_timestamp", NOW.0.to_string()),
            ("oauth_nonce", format!("n{}", case.nonce)),
            ("oauth_callback", "oob".to_owned()),
        ];
        pairs.extend(token.as_ref().map(|token| ("oauth_token", token.clone())));
        if !verifier.is_empty() {
            pairs.push(("oauth_verifier", verifier.to_owned()));
        }
        if case.method == SignatureMethod::HmacSha1 {
            // That of an empty body.
            pairs.push(("oauth_body_hash", "2jmj7l5rSw0yVb/vlWAYkK/YBwk=".to_owned()));
        }
        let line = |pairs: &[(&str, String)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| format!("{name}=\"{}\"", percent::encode(value.as_bytes())));
            format!("OAuth {}", pairs.collect::<Vec<_>>().join(","))
        };
        let (path, query) = path.split_once('?').unwrap();
        let mut parameters = Parameters::new();
        parameters.read_header(line(&pairs).as_bytes()).unwrap();
        parameters
            .read_query(format!("{query}{}", case.query).as_bytes())
            .unwrap();
        let base = BaseString {
            method: b"POST",
            origin: &self.setup.url.encoded,
            path: path.as_bytes(),
            parameters: &parameters,
            selection: case.selection,
            deviations: case.deviations,
        };
        let token_secret = token.map(|token| format!("secret of {token}"));
        let secret = Secret::from(case.secret);
        let key = match case.alone {
            true => SigningKey::consumer_secret_alone(&secret),
            false => SigningKey::new(&secret, &token_secret.unwrap_or_default().into()),
        };
        pairs.push(("oauth_signature", sign(case.method, &key, &base).unwrap()));
        line(&pairs)
    }

    fn text(&self, case: &Case<'_>) -> RequestText {
        RequestText {
            method: "POST".to_owned(),
            url: format!("https://api.example{}{}", case.call.1, case.query),
            headers: vec![format!("Authorization: {}", self.field(case))],
            data: None,
        }
    }

    /// How the server accepts the call: with which deviations, and whether under the previous secret.
    async fn server(&self, rules: &VerifyRules, case: &Case<'_>) -> Option<(DeviationSet, bool)> {
        let (path, query) = case.call.1.split_once('?').unwrap();
        let query = format!("{query}{}", case.query);
        let mut parameters = Parameters::new();
        parameters.read_header(self.field(case).as_bytes()).unwrap();
        parameters.read_query(query.as_bytes()).unwrap();
        let purpose = case.call.0;
        let protocol = parameters.protocol(MethodSet::ALL, LocationRule::FlowApart);
        let request = SignedRequest {
            method: b"POST",
            url: &self.setup.url,
            path: path.as_bytes(),
            query: query.as_bytes(),
            parameters: &parameters,
            credentials: protocol.unwrap().demand(purpose.needed()).unwrap(),
            body: None,
            caller: None,
            own_address: None,
            secure: true,
            is_described: false,
            window: None,
        };
        let verifying = self.setup.verifier.verify(rules, purpose, &request, None);
        match verifying.outcome().await {
            Ok(verified) => Some((verified.deviations(), verified.by_previous_secret)),
            Err(VerifyError::Rejection(VerifyRejection::SignatureWrong(_))) => None,
            Err(other) => panic!("{case:?}: {other}"),
        }
    }

    /// The same, as the explanation finds it.
    async fn explained(
        &self,
        rules: &VerifyRules,
        case: &Case<'_>,
    ) -> Option<(DeviationSet, bool)> {
        let text = self.text(case);
        let request = text.request().unwrap();
        let reading = Reading::new(&request);
        let known = self.known(rules, &reading).await;
        let server = known.server.unwrap();
        let purpose = server.rules.purpose(&request, &reading.parameters);
        assert_eq!(purpose, case.call.0, "{case:?}");
        let protocol = reading
            .parameters
            .protocol(MethodSet::ALL, purpose.location_rule());
        let call = Named {
            request: &request,
            parameters: &reading.parameters,
            protocol: protocol.unwrap(),
            method: case.method,
            purpose: Some(purpose),
        };
        let call = ServerCall::new(&call, purpose, &server);
        match call.signature().unwrap() {
            SignatureCheck::Holds(proof) => {
                Some((proof.deviations, proof.secret == SecretAge::Previous))
            }
            SignatureCheck::Needs(_) | SignatureCheck::Wrong => None,
        }
    }

    async fn known(&self, rules: &VerifyRules, reading: &Reading<'_, '_>) -> KnownSecrets {
        let store = self.setup.store.store();
        let asked = reading.asked().unwrap();
        find(&store, self.rules(rules), NOW, &asked).await.unwrap()
    }

    fn verify_rules(&self, accept_description: bool) -> VerifyRules {
        let mut rules = self.setup.rules.clone();
        rules.signature.accept_description = accept_description;
        rules
    }
}

fn consumer(key: &str, dialect: Option<Dialect>, accept: DeviationSet) -> Consumer {
    Consumer {
        dialect,
        accept: accept.iter().collect(),
        previous_secret: Some((format!("previous of {key}").into(), UnixTime(NOW.0 + 10))),
        ..Consumer::for_tests(key)
    }
}

#[tokio::test]
async fn accepts_what_the_server_accepts_in_each_call_and_dialect() {
    let deviations = Deviation::ALL.iter().copied();
    let one_each = deviations.map(|it| DeviationSet::NONE.with(it));
    let sets: Vec<DeviationSet> = [DeviationSet::NONE].into_iter().chain(one_each).collect();
    let mut consumers = Vec::new();
    for (number, &accept) in sets.iter().enumerate() {
        for dialect in [Dialect::Rfc5849, Dialect::Legacy] {
            let key = format!("{}{number}", ["a", "b"][dialect as usize]);
            consumers.push(consumer(&key, Some(dialect), accept));
            let key = format!("{key}-empty");
            let secret = Secret::from("");
            consumers.push(Consumer {
                secret,
                ..consumer(&key, Some(dialect), accept)
            });
        }
    }
    let none = DeviationSet::NONE;
    let (rfc, description) = (Selection::Rfc5849, Selection::Description);
    let hmac = SignatureMethod::HmacSha1;
    let signings = [
        (hmac, rfc, none, false, false),
        (hmac, rfc, none, false, true),
        (hmac, rfc, none, true, false),
        (hmac, description, none, false, false),
        (hmac, description, none, true, true),
        (hmac, rfc, none.with(Deviation::RepeatsOnce), false, false),
        (
            hmac,
            rfc,
            none.with(Deviation::ValuesUnencoded),
            false,
            false,
        ),
        (SignatureMethod::Plaintext, rfc, none, false, false),
        (SignatureMethod::Plaintext, rfc, none, true, false),
    ];
    let (mut nonce, mut accepted) = (0, 0);
    for consumer in &consumers {
        let stage = Stage::new();
        stage.register(consumer).await;
        for rules in [true, false].map(|accept| stage.verify_rules(accept)) {
            let key = consumer.key.as_str();
            let secrets = [
                String::from_utf8_lossy(consumer.secret.expose()).into_owned(),
                format!("previous of {key}"),
            ];
            for (call, query) in CALLS
                .into_iter()
                .flat_map(|it| [(it, "a=1&a=2"), (it, "a=1&a=1")])
            {
                for (method, selection, deviations, alone, previous) in signings {
                    let secret = &*secrets[usize::from(previous)];
                    if secret.is_empty() && method == SignatureMethod::Plaintext && alone {
                        // Its signature is empty, so the call is not in shape.
                        continue;
                    }
                    nonce += 1;
                    let case = Case {
                        call,
                        query,
                        consumer: key,
                        secret,
                        method,
                        selection,
                        deviations,
                        alone,
                        nonce,
                    };
                    let server = stage.server(&rules, &case).await;
                    assert_eq!(stage.explained(&rules, &case).await, server, "{case:?}");
                    accepted += usize::from(server.is_some());
                }
            }
        }
    }
    // Neither accepts everything or nothing.
    assert!(
        (nonce / 10..nonce * 9 / 10).contains(&accepted),
        "{accepted} of {nonce}"
    );
}

#[tokio::test]
async fn tells_why_the_server_rejects_what_looks_right() {
    let stage = Stage::new();
    let legacy = Some(Dialect::Legacy);
    let bare = DeviationSet::NONE.with(Deviation::KeyWithoutAmpersand);
    let empty = Consumer {
        secret: Secret::from(""),
        ..consumer("empty", None, DeviationSet::NONE)
    };
    for consumer in [
        empty,
        consumer("legacy", legacy, DeviationSet::NONE),
        consumer("bare", None, bare),
    ] {
        stage.register(&consumer).await;
    }
    let right = Case {
        call: CALLS[1],
        query: "a=1",
        consumer: "empty",
        secret: "",
        method: SignatureMethod::HmacSha1,
        selection: Selection::Rfc5849,
        deviations: DeviationSet::NONE,
        alone: false,
        nonce: 0,
    };
    let described = Case {
        selection: Selection::Description,
        consumer: "legacy",
        secret: "secret of legacy",
        ..right
    };
    let bare = Case {
        consumer: "bare",
        secret: "secret of bare",
        alone: true,
        call: CALLS[2],
        ..right
    };
    let [with_description, without] = [true, false].map(|accept| stage.verify_rules(accept));
    for (rules, case, reason) in [
        // Anybody can sign with an empty secret.
        (&without, right, "the consumer has no secret"),
        // The revocation of a token follows RFC 5849 alone.
        (
            &with_description,
            Case {
                call: CALLS[4],
                ..described
            },
            "query_unsigned",
        ),
        // The dialect is for calls to the API.
        (
            &without,
            Case {
                call: CALLS[2],
                ..described
            },
            "query_unsigned",
        ),
        // The deviation is for calls to the API without a token.
        (&without, bare, "ampersand_missing"),
    ] {
        assert_eq!(stage.server(rules, &case).await, None, "{case:?}");
        let text = stage.text(&case);
        let request = text.request().unwrap();
        let reading = Reading::new(&request);
        let known = stage.known(rules, &reading).await;
        let explanation = reading.explain(Ok(known), false);
        assert!(!explanation.is_accepted(), "{case:?}");
        let told = explanation.view().diagnosis;
        assert!(
            told.as_ref().is_some_and(|told| told.contains(reason)),
            "{told:?}"
        );
    }
}
