//! The pages as a browser without JavaScript uses them, and as somebody uses them who means ill.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, Ordering},
    },
};

use aws_lc_rs::digest;
use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::*;
use crate::{
    clock::Clock,
    login::{
        Login, LoginError, LoginFault, LoginFuture,
        double::{MemoryStore, user},
    },
    policy::rate::Rate,
    respond::look,
    store::{
        cached,
        record::{AccessToken, Callback, Consumer, RequestToken, RequestTokenState},
    },
    telemetry::request_id::RequestIds,
};

mod applications;
mod audit;
mod authorize;
mod forgery;
mod language;
mod login;
mod password;

const ORIGIN: &str = "https://service.example";
const PATH: &str = "/service.oauth";
const PASSWORD: &str = "enchantress";
const AUTHORIZE: &str = "/service.oauth?mode=auth_req_token&oauth_token=request-token-1";
const APPLICATIONS: &str = "/service.oauth?mode=applications";
const LOGIN: &str = "/service.oauth?mode=login";
const LOGOUT: &str = "/service.oauth?mode=logout";
const CHANGE: &str = "/service.oauth?mode=password";

const TEN_PER_QUARTER: Rate = Rate {
    count: NonZeroU32::new(10).unwrap(),
    period: Duration::from_secs(15 * 60),
};

/// A service with two users, a consumer and a request token.
struct Site {
    pages: Pages,
    store: Arc<MemoryStore>,
    login: Arc<FakeLogin>,
    clock: Clock,
}

fn site() -> Site {
    site_with(|_| {})
}

fn site_with(change: impl FnOnce(&mut Params)) -> Site {
    let mut params = Params {
        secure: true,
        origin: ORIGIN.to_owned(),
        path: PATH.to_owned(),
        look: Arc::new(look("Photos")),
        session_ttl: Duration::from_secs(43_200),
        sessions_per_user: NonZeroU32::MIN.saturating_add(99),
        user_headers: None,
        request_ttl: Duration::from_secs(600),
        access_idle: None,
        default_dialect: Dialect::Rfc5849,
        permissions: vec![PermissionText {
            name: "read".parse().unwrap(),
            title: "See your photos".to_owned(),
            description: "All albums & captions".to_owned(),
        }],
    };
    change(&mut params);
    let clock = Clock::manual(UnixTime(1_750_000_000));
    let store = Arc::new(MemoryStore::default());
    for name in ["ada", "bob"] {
        store.put_user(user(name));
    }
    let consumer = consumer("printer", "Photo Printer");
    store
        .records()
        .consumers
        .insert(consumer.key.clone(), consumer);
    let cache = cached::Params {
        max_entries: 10,
        ttl: Duration::ZERO,
        negative_ttl: Duration::ZERO,
        stale_if_error: Duration::ZERO,
    };
    let cached = Cached::new(Arc::clone(&store) as _, &cache, clock.clone());
    let site = Site {
        pages: Pages::new(
            params.clone(),
            Services {
                store: Arc::clone(&store) as _,
                credentials: Arc::new(cached),
                login: Arc::new(FakeLogin::new(&store)),
                passwords: Some(Arc::new(PasswordPool::start(1, 4).unwrap())),
                throttle: Arc::new(Throttle::new(TEN_PER_QUARTER, &Secret::from(""))),
            },
        ),
        login: Arc::new(FakeLogin::new(&store)),
        store,
        clock,
    };
    let services = Services {
        login: Arc::clone(&site.login) as _,
        ..site.pages.services.clone()
    };
    let site = Site {
        pages: Pages::new(params, services),
        ..site
    };
    site.put_request_token("request-token-1", |_| {});
    site
}

fn look(realm: &str) -> Look {
    let params = look::Params {
        realm: realm.to_owned(),
        ..look::Params::default()
    };
    Look::read(params).unwrap()
}

fn consumer(key: &str, name: &str) -> Consumer {
    Consumer {
        name: name.to_owned(),
        callbacks: vec!["https://printer.example/ready".to_owned(), "oob".to_owned()],
        permissions: vec!["read".parse().unwrap(), "print".parse().unwrap()],
        ..Consumer::for_tests(key)
    }
}

impl Site {
    fn put_request_token(&self, token: &str, change: impl FnOnce(&mut RequestToken)) {
        let now = self.clock.now();
        let mut record = RequestToken {
            token: token.to_owned(),
            secret: Secret::from("request-token-secret"),
            consumer: "printer".parse().unwrap(),
            callback: Callback::Uri("https://printer.example/ready?job=7".to_owned()),
            permissions: vec!["read".parse().unwrap(), "print".parse().unwrap()],
            issued_at: now,
            expires_at: now.after(Duration::from_secs(600)),
            state: RequestTokenState::Issued,
            wrong_verifiers: 0,
        };
        change(&mut record);
        self.store
            .records()
            .request_tokens
            .insert(record.token.clone(), record);
    }

    fn put_access_token(&self, token: &str, user: &str, change: impl FnOnce(&mut AccessToken)) {
        let mut record = AccessToken {
            token: token.to_owned(),
            secret: Secret::from("access-token-secret"),
            consumer: "printer".parse().unwrap(),
            user: self.store.user_named(user).id,
            permissions: vec!["read".parse().unwrap()],
            issued_at: UnixTime(1_740_000_000),
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        };
        change(&mut record);
        self.store
            .records()
            .access_tokens
            .insert(record.token.clone(), record);
    }

    fn state(&self, token: &str) -> RequestTokenState {
        self.store.records().request_tokens[token].state.clone()
    }

    fn change_consumer(&self, change: impl FnOnce(&mut Consumer)) {
        change(
            self.store
                .records()
                .consumers
                .get_mut(&"printer".parse().unwrap())
                .unwrap(),
        );
    }

    fn sessions(&self) -> usize {
        self.store.records().sessions.len()
    }
}

/// Knows every enabled user of the store by one password, at no cost.
struct FakeLogin {
    store: Arc<MemoryStore>,
    mood: AtomicU8,
    /// What somebody else does after each check and before the session is opened.
    meanwhile: Mutex<Option<Meanwhile>>,
    checks: AtomicU8,
}

type Meanwhile = Box<dyn Fn(&MemoryStore) + Send>;

impl FakeLogin {
    const BUSY: u8 = 1;
    const BROKEN: u8 = 2;

    fn new(store: &Arc<MemoryStore>) -> Self {
        Self {
            store: Arc::clone(store),
            mood: AtomicU8::new(0),
            meanwhile: Mutex::default(),
            checks: AtomicU8::new(0),
        }
    }
}

impl LoginBackend for FakeLogin {
    fn login<'a>(&'a self, name: &'a str, password: Secret) -> LoginFuture<'a> {
        Box::pin(async move {
            match self.mood.load(Ordering::SeqCst) {
                Self::BUSY => return Err(LoginError::Busy),
                Self::BROKEN => {
                    return Err(LoginFault::Store(StoreError::Broken("on purpose")).into());
                }
                _ => {}
            }
            let user = self.store.user_by_name(name).await.unwrap();
            self.checks.fetch_add(1, Ordering::SeqCst);
            if let Some(meanwhile) = &*self.meanwhile.lock().unwrap() {
                meanwhile(&self.store);
            }
            match user {
                Some(user) if user.enabled && password == Secret::from(PASSWORD) => Ok(Login {
                    user,
                    rehashed: None,
                }),
                user => Err(LoginError::Rejected {
                    account: user.map(|user| user.id),
                }),
            }
        })
    }
}

/// A user with a password hash; [`FakeLogin`] does not look at it.
fn with_hash(name: &str) -> User {
    User {
        password_hash: Some(Secret::from("a hash")),
        ..user(name)
    }
}

/// A browser: keeps cookies, sends what browsers send.
#[derive(Clone)]
struct Browser {
    cookies: BTreeMap<String, String>,
    origin: Option<String>,
    sec_fetch_site: Option<String>,
    accept_language: Option<String>,
    peer: IpAddr,
}

fn browser() -> Browser {
    Browser {
        cookies: BTreeMap::new(),
        origin: Some(ORIGIN.to_owned()),
        sec_fetch_site: Some("same-origin".to_owned()),
        accept_language: None,
        peer: "192.0.2.1".parse().unwrap(),
    }
}

/// What a browser shows.
#[derive(Debug, PartialEq)]
struct Page {
    status: u16,
    fields: Vec<(&'static str, String)>,
    body: String,
}

impl From<OwnResponse> for Page {
    fn from(response: OwnResponse) -> Self {
        Self {
            status: response.status,
            fields: response.fields,
            body: String::from_utf8(response.body.to_vec()).unwrap(),
        }
    }
}

impl Browser {
    async fn get(&mut self, site: &Site, url: &str) -> Page {
        let mut visit = self.clone();
        visit.origin = None;
        visit.sec_fetch_site = Some("cross-site".to_owned());
        let page = visit.send(site, "GET", url, "").await;
        self.cookies = visit.cookies;
        page
    }

    async fn post(&mut self, site: &Site, url: &str, fields: &[(&str, &str)]) -> Page {
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        self.send(site, "POST", url, &form).await
    }

    async fn send(&mut self, site: &Site, method: &str, url: &str, form: &str) -> Page {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let cookies: Vec<_> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let cookies = cookies.join("; ");
        let request = PageRequest {
            trusted_fields: None,
            method,
            path,
            query: query.as_bytes(),
            form: form.as_bytes(),
            accept_language: self.accept_language.as_deref().map(str::as_bytes),
            cookies: if cookies.is_empty() {
                vec![]
            } else {
                vec![cookies.as_bytes()]
            },
            origin: self.origin.as_deref().map(str::as_bytes),
            sec_fetch_site: self.sec_fetch_site.as_deref().map(str::as_bytes),
            peer: self.peer,
            now: site.clock.now(),
            request_id: &RequestId::new(&RequestIds::new("id-of-a-page-request"), None),
        };
        let pages = &site.pages;
        let page = match query {
            query if query.contains("mode=login") => pages.login(request).await,
            query if query.contains("mode=logout") => pages.logout(request).await,
            query if query.contains("mode=applications") => pages.applications(request).await,
            query if query.contains("mode=password") => pages.password(request).await,
            _ => pages.authorize(request).await,
        };
        let page = Page::from(page);
        check_every_page(&page);
        for (_, cookie) in page.fields.iter().filter(|(name, _)| *name == "Set-Cookie") {
            let (pair, attributes) = cookie.split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        page
    }

    /// Opens a page that asks for a login, and logs in.
    async fn log_in(&mut self, site: &Site, url: &str, name: &str, password: &str) -> Page {
        let form = self.get(site, url).await;
        let (action, csrf) = (
            attribute(&form.body, "action=\""),
            hidden(&form.body, "csrf"),
        );
        let fields = [
            ("csrf", csrf.as_str()),
            ("username", name),
            ("password", password),
        ];
        self.post(site, &action, &fields).await
    }

    /// Is logged in and sees the consent form of a token.
    async fn at_consent(&mut self, site: &Site, url: &str) -> Page {
        let page = self.log_in(site, url, "ada", PASSWORD).await;
        assert_eq!((page.status, field(&page, "Location")), (303, Some(url)));
        let page = self.get(site, url).await;
        assert_eq!(page.status, 200, "{}", page.body);
        page
    }

    async fn decide(&mut self, site: &Site, consent: &Page, decision: &str) -> Page {
        let (action, csrf) = (
            attribute(&consent.body, "action=\""),
            hidden(&consent.body, "csrf"),
        );
        self.post(site, &action, &[("csrf", &csrf), ("decision", decision)])
            .await
    }

    fn session(&self) -> Option<&String> {
        self.cookies.get("__Host-countersign")
    }
}

/// What holds for each answer, whatever it is.
fn check_every_page(page: &Page) {
    let policy = field(page, "Content-Security-Policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    assert!(
        policy.ends_with("; frame-ancestors 'none'; base-uri 'none'"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"));
    assert_eq!(field(page, "X-Frame-Options"), Some("DENY"));
    assert_eq!(field(page, "X-Content-Type-Options"), Some("nosniff"));
    assert_eq!(field(page, "Referrer-Policy"), Some("same-origin"));
    assert_eq!(field(page, "Cache-Control"), Some("no-store"));
    for (name, value) in &page.fields {
        assert!(
            value.bytes().all(|byte| matches!(byte, b' '..=b'~')),
            "{name}: {value:?}"
        );
        if *name == "Set-Cookie" {
            assert!(
                value.contains("; Path=/; HttpOnly; SameSite=Lax"),
                "{value}"
            );
        }
    }
    assert_eq!(
        page.status == 401,
        field(page, "WWW-Authenticate").is_some()
    );
    assert_eq!(page.status == 303, field(page, "Location").is_some());
    assert_eq!(
        matches!(page.status, 429 | 503),
        field(page, "Retry-After").is_some()
    );
    if page.body.is_empty() {
        assert_eq!(page.status, 303);
        return;
    }
    assert_eq!(
        field(page, "Content-Type"),
        Some("text/html; charset=utf-8")
    );
    let body = &page.body;
    let (lang, dir) = (attribute(body, "<html lang=\""), attribute(body, " dir=\""));
    let start = format!(
        "<!doctype html>\n<html lang=\"{lang}\" dir=\"{dir}\">\n<head>\n<meta charset=\"utf-8\">"
    );
    assert!(body.starts_with(&start), "{body}");
    assert_eq!(dir, if lang == "ar" { "rtl" } else { "ltr" });
    assert!(!body.contains("<script") && !body.contains("style=\""));
    // The style that the policy names is the one in the page.
    let style = body
        .split("<style>")
        .nth(1)
        .unwrap()
        .split("</style>")
        .next()
        .unwrap();
    let hash = STANDARD.encode(digest::digest(&digest::SHA256, style.as_bytes()));
    assert!(policy.contains(&format!("'sha256-{hash}'")), "{policy}");
    for secret in [
        "consumer-secret",
        "request-token-secret",
        "access-token-secret",
        PASSWORD,
    ] {
        assert!(!body.contains(secret));
    }
}

fn field<'a>(page: &'a Page, name: &str) -> Option<&'a str> {
    page.fields
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value.as_str())
}

fn location(page: &Page) -> &str {
    assert_eq!(page.status, 303, "{}", page.body);
    field(page, "Location").unwrap()
}

/// The first attribute value behind `before`, unescaped as far as our pages need it.
fn attribute(body: &str, before: &str) -> String {
    let value = body
        .split(before)
        .nth(1)
        .unwrap_or_else(|| panic!("no {before} in {body}"));
    value
        .split('"')
        .next()
        .unwrap()
        .replace("&#38;", "&")
        .replace("&amp;", "&")
}

fn hidden(body: &str, name: &str) -> String {
    attribute(
        body,
        &format!("<input type=\"hidden\" name=\"{name}\" value=\""),
    )
}

fn is_login_form(page: &Page) -> bool {
    page.body.contains("name=\"username\"") && page.body.contains("name=\"password\"")
}
