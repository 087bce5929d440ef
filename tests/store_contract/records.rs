//! Records to test with: complete, with another value in every field.

use std::{
    fmt::Debug,
    num::NonZeroU32,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use crate::store_contract::suite::Backend;
use countersign::{
    base::{clock::UnixTime, secret::Secret, text::names::UserId},
    records::{
        store::Store,
        values::{
            StoreError,
            record::{
                AccessToken, BodyHash, Callback, Consumer, Dialect, Registration, RequestToken,
                RequestTokenState, Session, User,
            },
            transfer::{ExportOrigin, Exported, ImportList, Numbered, Record},
            use_cases::{
                Added, ConsentDecision, Decided, TokenExchange, Updated, VerifiedPassword,
            },
        },
    },
};

/// `limits.sessions_per_user`.
pub(crate) const MOST_SESSIONS: NonZeroU32 = NonZeroU32::new(100).unwrap();
/// The time for which audit records are kept.
pub(crate) const AUDIT: Duration = Duration::from_secs(90 * 86_400);

pub(crate) const NOW: UnixTime = UnixTime(1_700_000_000);

/// `NOW` and some seconds more.
pub(crate) fn later(seconds: u64) -> UnixTime {
    UnixTime(NOW.0 + seconds)
}

pub(crate) fn consumer(key: &str) -> Consumer {
    Consumer {
        name: format!("Consumer {key}"),
        callbacks: vec![
            "https://consumer.example/back?a=\"1\"".to_owned(),
            "oob".to_owned(),
        ],
        permissions: vec!["read".parse().unwrap(), "write:all".parse().unwrap()],
        ..Consumer::for_tests(key)
    }
}

/// A consumer in which no field has its simplest value.
pub(crate) fn rich_consumer(key: &str) -> Consumer {
    Consumer {
        secret: Secret::from(vec![0, 255, b'\n', 39]),
        previous_secret: Some(("before".into(), later(60))),
        rsa_public_key: Some("-----BEGIN PUBLIC KEY-----\n…".to_owned()),
        name: "Ünïcode \0 'quoted'".to_owned(),
        callbacks: vec![],
        permissions: vec![],
        description: Some("Prints \0 'photos' – fast".to_owned()),
        website: Some("https://consumer.example/".to_owned()),
        dialect: Some(Dialect::Legacy),
        pinned: vec!["school=a%20b".parse().unwrap()],
        body_hash: Some(BodyHash::Required),
        contact: Some("ops@\0.example".to_owned()),
        from: vec!["203.0.113.0/24".parse().unwrap()],
        rate: Some("100 per 15m".parse().unwrap()),
        owner: Some(id("u")),
        registration: Some(Registration::Declined),
        decision: Some("Not \0 'now'".to_owned()),
        asked_callbacks: vec!["https://asked.example/".to_owned()],
        enforce: true,
        rsa_only: true,
        enabled: false,
        ..consumer(key)
    }
}

pub(crate) fn user(id: &str) -> User {
    User {
        id: id.parse().unwrap(),
        name: format!("{id}@example.org"),
        display_name: Some(format!("User {id}")),
        password_hash: Some("$argon2id$…".into()),
        must_change_password: false,
        enabled: true,
        created_at: NOW,
    }
}

pub(crate) fn access_token(token: &str, consumer: &str, user: &str) -> AccessToken {
    AccessToken {
        token: token.to_owned(),
        secret: format!("secret of {token}").into(),
        consumer: consumer.parse().unwrap(),
        user: user.parse().unwrap(),
        permissions: vec!["read".parse().unwrap()],
        issued_at: NOW,
        expires_at: Some(later(3600)),
        last_used_at: None,
        last_used_from: None,
        revoked_at: None,
        began: Default::default(),
        with_display_name: false,
    }
}

pub(crate) fn request_token(token: &str, consumer: &str) -> RequestToken {
    RequestToken {
        token: token.to_owned(),
        secret: format!("secret of {token}").into(),
        consumer: consumer.parse().unwrap(),
        callback: Callback::Uri("https://consumer.example/back?x=1".to_owned()),
        permissions: vec!["read".parse().unwrap()],
        issued_at: NOW,
        expires_at: later(600),
        state: RequestTokenState::Issued,
        wrong_verifiers: 0,
    }
}

pub(crate) fn session(byte: u8, user: &str) -> Session {
    Session {
        id_hash: [byte; 32],
        user: user.parse().unwrap(),
        created_at: NOW,
        expires_at: later(1000),
        address: [192, 0, 2, byte].into(),
        browser: Some("Firefox".to_owned()),
        system: None,
    }
}

/// Issues [`access_token`] of consumer `c` and user `u`.
pub(crate) async fn issue(store: &Arc<Store>, token: &str) -> Added {
    let token = access_token(token, "c", "u");
    store.issue_access_token(token).await.unwrap()
}

/// Issues [`request_token`] of consumer `c`.
pub(crate) async fn ask(store: &Arc<Store>, token: &str) {
    let token = request_token(token, "c");
    store.issue_request_token(token, 1_000).await.unwrap();
}

/// A change that is always wanted.
pub(crate) fn always<'a>(
    change: &'a (dyn Fn(&mut Consumer) + Sync),
) -> impl Fn(&mut Consumer) -> bool + Sync + 'a {
    move |consumer| {
        change(consumer);
        true
    }
}

/// Enables or disables a user; `false` if there is none.
pub(crate) async fn set_enabled(
    store: &Arc<Store>,
    id: &UserId,
    enabled: bool,
    now: UnixTime,
) -> bool {
    let change = |user: &mut User| {
        user.enabled = enabled;
        true
    };
    let updated = store.update_user(id, now, &change).await.unwrap();
    matches!(updated, Updated::Updated(user) if user.enabled == enabled)
}

/// A name as its type.
pub(crate) fn id<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// [`allow`] with another token on the redirect.
pub(crate) fn with_redirect_token() -> ConsentDecision {
    ConsentDecision::Allow {
        permissions: request_token("", "c").permissions,
        shown: None,
        earlier: None,
        verifier: VERIFIER.into(),
        redirect_token: Some("redirect".to_owned()),
        expires_at: later(1200),
    }
}

/// The verifier that [`allow`] sets.
pub(crate) const VERIFIER: &str = "the verifier";

pub(crate) fn allow() -> ConsentDecision {
    ConsentDecision::Allow {
        permissions: request_token("", "c").permissions,
        shown: None,
        earlier: None,
        verifier: VERIFIER.into(),
        redirect_token: None,
        expires_at: later(1200),
    }
}

/// An exchange that is right in everything; the access token is named after the request token.
pub(crate) fn exchange(token: &str, consumer: &str) -> TokenExchange {
    TokenExchange {
        token: token.to_owned(),
        consumer: consumer.parse().unwrap(),
        verifier: VERIFIER.into(),
        now: later(10),
        access_token: format!("access-{token}"),
        access_secret: "access secret".into(),
        expires_at: Some(later(9999)),
        with_display_name: true,
        reuse: false,
        most: None,
        idle: None,
    }
}

/// An empty store.
pub(crate) async fn opened<B: Backend>() -> (B, Arc<Store>) {
    let backend = B::fresh().await;
    let store = backend.open().await;
    (backend, store)
}

/// A store with the records of [`populate`].
pub(crate) async fn populated<B: Backend>() -> (B, Arc<Store>) {
    let (backend, store) = opened().await;
    populate(&store).await;
    (backend, store)
}

/// An empty store, opened by two processes.
pub(crate) async fn opened_twice<B: Backend>() -> (B, [Arc<Store>; 2]) {
    let (backend, store) = opened::<B>().await;
    let other = backend.open().await;
    (backend, [store, other])
}

/// A store with the records of [`populate`], opened by two processes.
pub(crate) async fn populated_twice<B: Backend>() -> (B, [Arc<Store>; 2]) {
    let (backend, stores) = opened_twice().await;
    populate(&stores[0]).await;
    (backend, stores)
}

/// Registers consumer `c` and user `u`.
pub(crate) async fn populate(store: &Arc<Store>) {
    assert_eq!(
        store.add_consumer(consumer("c")).await.unwrap(),
        Added::Added
    );
    assert_eq!(store.add_user(user("u")).await.unwrap(), Added::Added);
}

/// As [`populate`], and a request token `r` of `c` that `u` has authorized with `decision`.
pub(crate) async fn authorize(store: &Arc<Store>, decision: ConsentDecision) {
    populate(store).await;
    store
        .issue_request_token(request_token("r", "c"), 9)
        .await
        .unwrap();
    let user = "u".parse().unwrap();
    assert_eq!(
        decide_as(store, "r", &user, decision, NOW).await.unwrap(),
        Decided::Recorded
    );
}

/// The answer to a call among many: a call that found no room has changed nothing; it is repeated for half a minute.
pub(crate) async fn until_answered<T, F>(mut call: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>>,
{
    let begun = Instant::now();
    loop {
        match call().await {
            Err(StoreError::Unavailable(_)) if begun.elapsed() < Duration::from_secs(30) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            answer => return answer.unwrap(),
        }
    }
}

/// The password hash of a user as it is now, for a login that has just verified it.
pub(crate) async fn verified(store: &Arc<Store>, user: &str) -> VerifiedPassword {
    let user = store.user(&user.parse().unwrap()).await.unwrap();
    VerifiedPassword {
        hash: user.and_then(|user| user.password_hash),
        rehashed: None,
    }
}

/// Opens [`session`] with the password that the user has now; returns whether it was opened.
pub(crate) async fn open_session(store: &Arc<Store>, byte: u8, user: &str) -> bool {
    let verified = verified(store, user).await;
    store
        .open_session(session(byte, user), verified, MOST_SESSIONS)
        .await
        .unwrap()
}

/// Decides in a new session of the user, if one can be opened.
pub(crate) async fn decide_as(
    store: &Arc<Store>,
    token: &str,
    user: &UserId,
    decision: ConsentDecision,
    now: UnixTime,
) -> Result<Decided, StoreError> {
    static SESSIONS: AtomicU32 = AtomicU32::new(0);
    let mut session = session(200, user.as_str());
    let number = SESSIONS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    session.id_hash[..4].copy_from_slice(&number);
    let id_hash = session.id_hash;
    let verified = verified(store, user.as_str()).await;
    store.open_session(session, verified, MOST_SESSIONS).await?;
    store.record_decision(token, &id_hash, decision, now).await
}

/// An import of records in any order, whose lines are their places in the list. No password hash has a cost.
pub(crate) fn import_list(records: Vec<Record>) -> ImportList<'static> {
    let numbered = |(line, record)| Numbered {
        line,
        record,
        left_out: Vec::new(),
    };
    let mut records: Vec<_> = records.into_iter().enumerate().map(numbered).collect();
    records.sort_by_key(|numbered| numbered.record.rank());
    ImportList::new(records.into_iter().map(Ok), NOW, |_| 0)
}

/// The contents of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WholeExport {
    pub(crate) origin: ExportOrigin,
    pub(crate) records: Vec<Record>,
}

/// The contents of a store; the head announces the number of its records.
pub(crate) async fn exported(store: &Store) -> WholeExport {
    let (mut head, mut records) = (None, Vec::new());
    let mut take = |part| {
        match part {
            Exported::Head(origin, count) => head = Some((origin, count)),
            Exported::Records(some) => records.extend(some),
        }
        Ok(())
    };
    store.export(&mut take).await.unwrap();
    let (origin, count) = head.unwrap();
    assert_eq!(count, records.len() as u64);
    WholeExport { origin, records }
}
