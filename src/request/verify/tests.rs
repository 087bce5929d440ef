//! The order of verification and requests that must not pass as others, with a clock that stands still.

use super::{
    settings::{Enforcement, SignatureSettings, TokenSettings},
    *,
};
use crate::{
    base::{clock::UnixTime, secret::Secret, settings::Lifetime},
    oauth::{
        BaseString, Deviation, DeviationSet, LocationRule, MethodSet, Parameters, Selection,
        SignatureMethod, SigningKey, diagnosis::Diagnosed, signature,
    },
    records::{
        credentials,
        nonce::{self, LocalWindow, OnLost},
        store::test_double::{TestStore, user},
        values::record::{AccessToken, Consumer, Dialect},
    },
    request::parse::origin::PublicUrl,
    telemetry::calls::facts::SenderProof,
    wire::url::origin::HttpUrl,
};

/// The time of the verifier's clock.
pub const NOW: UnixTime = UnixTime(1_800_000_000);
const WINDOW: Duration = Duration::from_secs(300);
const IDLE: Duration = Duration::from_secs(3600);

/// A verifier over a store with the consumers `shop` and `other`.
pub struct Setup {
    /// The store.
    pub store: Arc<TestStore>,
    clock: Clock,
    /// The verifier.
    pub verifier: Verifier,
    /// Its rules.
    pub rules: VerifyRules,
    /// The public URL.
    pub url: PublicUrl,
}

/// An access token of a consumer.
pub fn token(name: &str, consumer: &str) -> AccessToken {
    AccessToken {
        token: name.to_owned(),
        secret: Secret::from(format!("secret of {name}")),
        consumer: consumer.parse().unwrap(),
        user: user("ada").id,
        permissions: Vec::new(),
        issued_at: NOW,
        expires_at: None,
        last_used_at: None,
        last_used_from: None,
        revoked_at: None,
        began: Default::default(),
        with_display_name: false,
    }
}

/// A request to sign: its protocol parameters, and the key.
struct Call<'a> {
    consumer: &'a str,
    token: Option<&'a str>,
    nonce: &'a str,
    secrets: [&'a str; 2],
}

impl Setup {
    /// Opens store and verifier.
    pub fn opened() -> Self {
        let store = Arc::new(TestStore::default());
        for (name, key) in [("t", "shop"), ("o", "other")] {
            store.put_consumer(&Consumer::for_tests(key));
            store.put_access_token(&token(name, key));
        }
        let clock = Clock::manual(NOW);
        let cache = credentials::CacheSettings {
            max_entries: 100,
            ttl: Duration::from_secs(1_000_000),
            negative_ttl: Duration::from_secs(5),
            stale_if_error: Duration::ZERO,
        };
        let cached = Cached::new(store.store(), &cache, clock.clone());
        let window = nonce::WindowParams {
            path: None,
            window: WINDOW,
            max_entries: 1_000,
        };
        let window = LocalWindow::open(&window).unwrap();
        let window = window.start(NOW, None, OnLost::Refuse).unwrap();
        let nonces = Nonces::new(window, None);
        nonces.note_written_mark(UnixTime(u64::MAX), NOW).unwrap();
        Self {
            verifier: Verifier::new(
                Arc::new(cached),
                store.store(),
                Arc::new(nonces),
                clock.clone(),
            ),
            store,
            clock,
            rules: VerifyRules {
                signature: SignatureSettings {
                    methods: MethodSet::ALL,
                    timestamp_window: WINDOW,
                    default_dialect: Dialect::Rfc5849,
                    accept_description: true,
                    enforcement: Enforcement::Enforce,
                    advice: Advice::Off,
                },
                tokens: TokenSettings {
                    request_ttl: IDLE,
                    access_ttl: Lifetime(None),
                    access_idle: Lifetime(Some(IDLE)),
                    announce: None,
                },
                other_urls: Vec::new(),
                token_paths: Vec::new(),
            },
            url: HttpUrl::parse("https://api.example").unwrap().into(),
        }
    }

    /// Verifies a protected call that is signed in this way, now.
    async fn protected(&self, call: &Call<'_>) -> Result<Verified, VerifyError> {
        self.protected_as(call, "", DeviationSet::NONE).await
    }

    /// Verifies such a call with these parameters too, signed with these deviations.
    async fn protected_as(
        &self,
        call: &Call<'_>,
        parameters: &str,
        deviations: DeviationSet,
    ) -> Result<Verified, VerifyError> {
        let sent = self.clock.now();
        self.protected_at(sent, call, parameters, deviations).await
    }

    /// Verifies such a call with this timestamp.
    async fn protected_at(
        &self,
        sent: UnixTime,
        call: &Call<'_>,
        parameters: &str,
        deviations: DeviationSet,
    ) -> Result<Verified, VerifyError> {
        let mut header = format!(
            "OAuth oauth_consumer_key=\"{}\",oauth_signature_method=\"HMAC-SHA1\",oauth_timestamp=\"{}\",oauth_nonce=\"{}\"",
            call.consumer, sent.0, call.nonce,
        );
        if let Some(token) = call.token {
            header.push_str(&format!(",oauth_token=\"{token}\""));
        }
        header.push_str(parameters);
        let [consumer_secret, token_secret] = call.secrets.map(Secret::from);
        let mut parameters = Parameters::new();
        parameters.read_header(header.as_bytes()).unwrap();
        let base = BaseString {
            method: b"GET",
            origin: &self.url.encoded,
            path: b"/",
            parameters: &parameters,
            selection: Selection::Rfc5849,
            deviations,
        };
        let key = SigningKey::new(&consumer_secret, &token_secret);
        let signature = signature::sign(SignatureMethod::HmacSha1, &key, &base).unwrap();
        let signature = crate::oauth::percent::encode(signature.as_bytes());
        header.push_str(&format!(",oauth_signature=\"{signature}\""));
        let mut parameters = Parameters::new();
        parameters.read_header(header.as_bytes()).unwrap();
        let credentials = parameters
            .protocol(self.rules.signature.methods, LocationRule::OneLocation)
            .unwrap()
            .demand(&[])
            .unwrap();
        let request = SignedRequest {
            method: b"GET",
            url: &self.url,
            path: b"/",
            query: b"",
            parameters: &parameters,
            credentials,
            body: None,
            caller: None,
            own_address: None,
            secure: true,
            is_described: false,
            window: None,
        };
        self.verifier
            .verify(&self.rules, Purpose::Api, &request, None)
            .outcome()
            .await
    }

    fn change(&self, change: impl FnOnce(&mut AccessToken)) {
        self.store.change_access_token("t", change);
    }
}

const RIGHT: Call<'_> = Call {
    consumer: "shop",
    token: Some("t"),
    nonce: "n",
    secrets: ["secret of shop", "secret of t"],
};

fn rejection(outcome: Result<Verified, VerifyError>) -> Option<VerifyRejection> {
    match outcome {
        Ok(_) => None,
        Err(VerifyError::Rejection(rejection)) => Some(rejection),
        Err(other) => panic!("{other}"),
    }
}

const WRONG: VerifyRejection = VerifyRejection::SignatureWrong(Advised {
    advice: None,
    diagnosis: Diagnosed::Unknown,
    previous_secret: false,
    proof: SenderProof::None,
    needs: None,
    base_strings: None,
});

#[tokio::test]
async fn a_token_opens_nothing_to_another_consumer() {
    let setup = Setup::opened();
    use VerifyRejection::{ConsumerKeySpaced, ConsumerUnknown, TokenUnknown};

    let [shop, other, t, o] = ["shop", "other", "t", "o"].map(|name| format!("secret of {name}"));
    let [shop, other, t, o] = [&*shop, &*other, &*t, &*o];
    for (consumer, token, secrets, expected) in [
        ("shop", "t", [shop, t], None),
        // Rightly signed with everything that the other consumer can know.
        ("shop", "o", [shop, o], Some(TokenUnknown)),
        ("other", "t", [other, t], Some(TokenUnknown)),
        ("other", "t", [shop, t], Some(TokenUnknown)),
        ("none", "t", [shop, t], Some(ConsumerUnknown)),
        ("Shop", "t", [shop, t], Some(ConsumerUnknown)),
        ("shop ", "t", [shop, t], Some(ConsumerKeySpaced)),
        ("\u{a0}shop", "t", [shop, t], Some(ConsumerKeySpaced)),
        ("shop", "T", [shop, t], Some(TokenUnknown)),
        // A key with a part left out, swapped or shifted over the `&`.
        ("shop", "t", [shop, ""], Some(WRONG)),
        ("shop", "t", ["", t], Some(WRONG)),
        ("shop", "t", [t, shop], Some(WRONG)),
        ("shop", "t", ["", ""], Some(WRONG)),
    ] {
        let call = Call {
            consumer,
            token: Some(token),
            nonce: "n",
            secrets,
        };
        assert_eq!(
            rejection(setup.protected(&call).await),
            expected,
            "{consumer} {token} {secrets:?}"
        );
    }
}

#[tokio::test]
async fn one_signature_is_computed_also_for_unknown_credentials() {
    let setup = Setup::opened();
    for (consumer, token) in [
        ("shop", Some("t")),
        ("shop", Some("o")),
        ("shop", Some("none")),
        ("none", Some("t")),
        ("none", Some("none")),
        ("none", None),
        ("shop", None),
    ] {
        let call = Call {
            consumer,
            token,
            nonce: "n",
            secrets: ["a guess", "another"],
        };
        // The second time, what exists is in the cache.
        for now in [NOW, NOW, UnixTime(NOW.0 + 2 * WINDOW.as_secs())] {
            setup.clock.set(now);
            let before = proof::COMPUTED.get();
            let outcome = setup.protected_at(NOW, &call, "", DeviationSet::NONE).await;
            let rejected = rejection(outcome);
            assert!(rejected.is_some(), "{consumer} {token:?}");
            let computed = proof::COMPUTED.get() - before;
            assert_eq!(computed, 1, "{consumer} {token:?} {rejected:?}");
        }
    }
}

#[tokio::test]
async fn a_wrong_signature_costs_a_worker_as_little_as_a_right_one() {
    const TWICE: &str = ",a=\"added\",a=\"1\"";
    let all = [Deviation::RepeatsOnce, Deviation::ValuesUnencoded];
    let wrong = Call {
        secrets: ["a guess", "another"],
        ..RIGHT
    };
    let right = Call {
        nonce: "n%2B",
        ..RIGHT
    };
    for accepted in 0..=all.len() {
        let (accepted, others) = all.split_at(accepted);
        let mut setup = Setup::opened();
        setup.rules.signature.advice = Advice::Full;
        setup.store.change_consumer("shop", |shop| {
            let old = std::mem::replace(&mut shop.secret, Secret::from("new"));
            shop.previous_secret = Some((old, NOW.after(WINDOW)));
            shop.accept = accepted.to_vec();
        });
        let with = |deviations: &[Deviation]| {
            let set = deviations.iter().copied();
            set.fold(DeviationSet::NONE, DeviationSet::with)
        };
        // The way that is tried last: the secret that ends, and all that the consumer is allowed.
        let before = proof::COMPUTED.get();
        let verified = setup.protected_as(&right, TWICE, with(accepted)).await;
        let most = proof::COMPUTED.get() - before;
        assert_eq!(rejection(verified), None);
        let needed = others.first().copied();
        let missing = needed.map(|needed| (&right, Some(needed)));
        for (call, expected) in [(&wrong, None)].into_iter().chain(missing) {
            let deviations = expected.map_or(accepted.to_vec(), |needed| {
                accepted.iter().copied().chain([needed]).collect()
            });
            let before = proof::COMPUTED.get();
            let outcome = setup.protected_as(call, TWICE, with(&deviations)).await;
            let computed = proof::COMPUTED.get() - before;
            assert!(
                computed <= most,
                "{computed} with {accepted:?}, {most} at most"
            );
            match rejection(outcome) {
                Some(VerifyRejection::SignatureWrong(wrong)) => assert_eq!(wrong.needs, expected),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn nonce_counts_for_consumer_and_token_and_never_moves_between() {
    let setup = Setup::opened();
    for (name, key) in [("bc", "a"), ("c", "ab")] {
        setup.store.put_consumer(&Consumer::for_tests(key));
        setup.store.put_access_token(&token(name, key));
    }
    let call = |consumer, token, nonce, secrets| Call {
        consumer,
        token: Some(token),
        nonce,
        secrets,
    };
    for (again, expected) in [(false, None), (true, Some(VerifyRejection::NonceUsed))] {
        for call in [
            call("a", "bc", "d", ["secret of a", "secret of bc"]),
            call("ab", "c", "d", ["secret of ab", "secret of c"]),
            call("a", "bc", "cd", ["secret of a", "secret of bc"]),
        ] {
            assert_eq!(
                rejection(setup.protected(&call).await),
                expected,
                "{again} {}",
                call.nonce
            );
        }
    }
}

#[tokio::test]
async fn an_idle_token_is_asked_for_again_before_it_is_rejected() {
    let setup = Setup::opened();
    let call = |nonce| Call { nonce, ..RIGHT };
    assert_eq!(rejection(setup.protected(&call("1")).await), None);
    setup.clock.advance(IDLE);
    assert_eq!(
        rejection(setup.protected(&call("2")).await),
        Some(VerifyRejection::TokenExpired)
    );
    // Another process has noted a use of its own.
    let used = setup.clock.now();
    setup.change(|token| token.last_used_at = Some(used));
    assert_eq!(rejection(setup.protected(&call("3")).await), None);
    // After that, all of the stored record counts.
    setup.clock.advance(IDLE);
    let used = setup.clock.now();
    setup.change(|token| {
        token.last_used_at = Some(used);
        token.revoked_at = Some(used);
    });
    assert_eq!(
        rejection(setup.protected(&call("4")).await),
        Some(VerifyRejection::TokenRevoked)
    );
    setup.clock.advance(IDLE);
    setup.store.sql("DELETE FROM access_tokens");
    assert_eq!(
        rejection(setup.protected(&call("5")).await),
        Some(VerifyRejection::TokenUnknown)
    );
}

#[tokio::test]
async fn deviations_come_from_the_record_that_verified_the_signature() {
    const SHORT_IDLE: Duration = Duration::from_secs(1);

    let mut setup = Setup::opened();
    setup.rules.tokens.access_idle = Lifetime(Some(SHORT_IDLE));
    let repeats = Deviation::RepeatsOnce;
    setup
        .store
        .change_consumer("shop", |shop| shop.accept = vec![repeats]);
    assert_eq!(rejection(setup.protected(&RIGHT).await), None);
    // Another process has noted a use, and the record that is read again no longer allows it.
    setup.clock.advance(SHORT_IDLE);
    let used = setup.clock.now();
    setup.change(|token| token.last_used_at = Some(used));
    setup
        .store
        .change_consumer("shop", |shop| shop.accept.clear());
    let call = Call {
        nonce: "2",
        ..RIGHT
    };
    let text = DeviationSet::NONE.with(repeats);
    let verified = setup.protected_as(&call, ",a=\"added\",a=\"1\"", text);
    let verified = verified.await.expect("the signature holds");
    // What was not signed has to be taken out.
    assert!(verified.deviations().contains(repeats));
}

#[tokio::test]
async fn states_are_told_only_under_a_right_signature() {
    let setup = Setup::opened();
    setup.change(|token| token.revoked_at = Some(NOW));
    let wrong = Call {
        secrets: ["secret of shop", "guess"],
        ..RIGHT
    };
    assert_eq!(rejection(setup.protected(&wrong).await), Some(WRONG));
    assert_eq!(
        rejection(setup.protected(&RIGHT).await),
        Some(VerifyRejection::TokenRevoked)
    );
}

#[tokio::test]
async fn previous_secret_verifies_until_the_second_its_grace_ends() {
    let setup = Setup::opened();
    setup.store.change_consumer("shop", |shop| {
        let old = std::mem::replace(&mut shop.secret, Secret::from("new"));
        shop.previous_secret = Some((old, NOW.after(Duration::from_secs(10))));
    });
    let old = |nonce| Call { nonce, ..RIGHT };
    let new = |nonce| Call {
        nonce,
        secrets: ["new", "secret of t"],
        ..RIGHT
    };
    assert_eq!(rejection(setup.protected(&old("1")).await), None);
    assert_eq!(rejection(setup.protected(&new("2")).await), None);
    // A nonce belongs to the consumer, whichever secret it is signed with.
    assert_eq!(
        rejection(setup.protected(&new("1")).await),
        Some(VerifyRejection::NonceUsed)
    );
    setup.clock.advance(Duration::from_secs(10));
    assert_eq!(rejection(setup.protected(&old("3")).await), Some(WRONG));
    assert_eq!(rejection(setup.protected(&new("4")).await), None);
}
