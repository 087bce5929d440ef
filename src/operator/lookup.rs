//! Records of the application at `store.lookup.url`. A consumer key or a token is posted to it, and its response has the
//! members of a line of an import.
//!
//! The requests of both kinds are few at once, however many callers there are, and each one goes on to its end when its
//! caller gives up. So callers who make keys up can neither occupy the application nor delay the records that are in use.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use thiserror::Error;
use zeroize::Zeroizing;

use super::manage::distinct_members;
use crate::{
    base::{clock::Clock, network::tls::TlsFiles, secret::Secret, text::names::ConsumerKey},
    operator::manage::transfer::export_line::{self, Defaults, LineError},
    records::{
        store::settings::LookupSettings,
        values::{
            ExternalFault, ExternalRecords, Result, StoreError,
            record::{AccessToken, Consumer},
            transfer::Record,
        },
    },
    telemetry::{log::causes::causes, redact::RedactedToken},
    wire::{
        outbound::{MAX_REQUESTS, OutboundError, SharedService, tls::remote_service},
        server::tls::TlsError,
    },
};

/// A key that no consumer has.
const UNKNOWN_KEY: &str = "no-consumer-of-countersign";

/// Looks records up in the application.
pub struct Lookup {
    service: Arc<SharedService>,
    /// As the configuration has it.
    url: String,
    authorization: HeaderValue,
    /// The cause, while the application fails.
    failing: Mutex<Option<String>>,
    /// A record of another name, and a token of another consumer, were logged; any caller can cause one.
    other_is_logged: [AtomicBool; 2],
}

/// Why the application cannot be asked.
#[derive(Debug, Error)]
pub enum LookupError {
    /// A file of TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The file of the secret cannot be read.
    #[error("store.lookup.secret_file: {}: {problem}", path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// What is wrong, and the fix.
        problem: String,
    },
    /// It was asked, and failed.
    #[error("store.lookup.url: {url}: {problem}")]
    Fails {
        /// The URL.
        url: String,
        /// What is wrong, and the fix.
        problem: String,
    },
}

/// Why a request has no result.
#[derive(Debug, Error)]
enum LookupFault {
    #[error(transparent)]
    Outbound(OutboundError),
    #[error("{MAX_REQUESTS} other requests took store.lookup.timeout")]
    Busy,
    #[error("responded {0}, as if the secret of store.lookup.secret_file were wrong")]
    Unauthorized(StatusCode),
    #[error("responded {0}, and redirects are not followed; write the URL to which it leads")]
    Redirect(StatusCode),
    #[error("responded {0}, which is neither 200 nor 404")]
    Status(StatusCode),
    #[error("the response is not JSON")]
    NotJson,
    #[error("the response for {name}: {problem}")]
    Record { name: String, problem: LineError },
}

impl From<OutboundError> for LookupFault {
    fn from(error: OutboundError) -> Self {
        match error {
            OutboundError::Busy => Self::Busy,
            error => Self::Outbound(error),
        }
    }
}

impl From<StatusCode> for LookupFault {
    fn from(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Self::Unauthorized(status),
            status if status.is_redirection() => Self::Redirect(status),
            status => Self::Status(status),
        }
    }
}

/// A record to ask for.
struct Asked<'a> {
    kind: &'static str,
    /// The members of the response that have its name and its secret.
    members: [&'static str; 2],
    name: &'a str,
    /// The name in the log.
    shown: String,
    request: Value,
}

impl<'a> Asked<'a> {
    fn consumer(key: &'a str) -> Self {
        Self {
            kind: "consumer",
            members: ["key", "secret"],
            name: key,
            shown: format!("consumer {key:?}"),
            request: json!({ "consumer_key": key }),
        }
    }

    fn token(token: &'a str, consumer: Option<&ConsumerKey>) -> Self {
        let mut request = json!({ "token": token });
        if let Some(key) = consumer {
            request["consumer_key"] = json!(key);
        }
        Self {
            kind: "token",
            members: ["token", "token_secret"],
            name: token,
            shown: format!("token {}", RedactedToken(token)),
            request,
        }
    }
}

impl Lookup {
    /// The application of these settings, if there is one. It is not reached yet.
    ///
    /// # Errors
    /// [`LookupError::Tls`], [`LookupError::Secret`]
    pub fn new(settings: &LookupSettings) -> Result<Option<Self>, LookupError> {
        let (Some(url), Some(secret_file)) = (&settings.url, &settings.secret_file) else {
            return Ok(None);
        };
        let files = TlsFiles {
            ca: settings.ca.clone(),
            identity: settings
                .certificate
                .clone()
                .zip(settings.private_key.clone()),
        };
        let keys = [
            "store.lookup.ca",
            "store.lookup.certificate",
            "store.lookup.private_key",
        ];
        let target = remote_service(&url.server, &files, keys)?;
        let service = SharedService::new(target, url.path.clone(), settings.timeout);
        Ok(Some(Self {
            service: Arc::new(service),
            url: url.to_string(),
            authorization: authorization(secret_file)?,
            // Until it has answered once.
            failing: Mutex::new(Some("it was not asked yet".to_owned())),
            other_is_logged: Default::default(),
        }))
    }

    /// The URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The cause, while the application fails; it is asked again then.
    pub async fn trouble(&self) -> Option<String> {
        let is_failing = self.failing.lock().is_some();
        if is_failing {
            let _ = self.ask(&Asked::consumer(UNKNOWN_KEY), true).await;
        }
        self.failing.lock().clone()
    }

    /// Asks for a key that no consumer has. Returns what is unwise about the application.
    ///
    /// # Errors
    /// [`LookupError::Fails`]
    pub async fn check(&self) -> Result<Option<String>, LookupError> {
        let asked = Asked::consumer(UNKNOWN_KEY);
        let fails = |problem| LookupError::Fails {
            url: self.url.clone(),
            problem,
        };
        let found = self.ask(&asked, true).await;
        if found.map_err(|fault| fails(causes(&fault)))?.is_some() {
            let problem = format!(
                "has a record for {UNKNOWN_KEY:?}, a key that no consumer has: respond 404"
            );
            return Err(fails(problem));
        }
        let wrong = HeaderValue::from_static("Bearer wrong");
        let asking = self.send(&asked, &wrong, true);
        let response = asking.await.map_err(LookupFault::from);
        let (status, _) = response.map_err(|fault| fails(causes(&fault)))?;
        let is_rejected = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
        Ok((!is_rejected).then(|| {
            format!(
                "store.lookup.url: {} responds {status} to a wrong secret: it is the URL of something else, or it gives \
                 secrets to everybody; let it respond 401",
                self.url
            )
        }))
    }

    async fn find(&self, asked: &Asked<'_>, is_refresh: bool) -> Result<Option<Record>> {
        let found = self.ask(asked, is_refresh).await;
        let record = found.and_then(|found| match found {
            Some(members) => self.record(asked, members),
            None => Ok(None),
        });
        record.map_err(|fault| {
            if let LookupFault::Record { name, problem } = &fault {
                tracing::warn!(name, %problem, "a response of store.lookup.url cannot be used");
            }
            StoreError::External(Arc::new(ExternalFault("store.lookup.url", fault.into())))
        })
    }

    /// The status and the body of the response.
    async fn send(
        &self,
        asked: &Asked<'_>,
        authorization: &HeaderValue,
        is_refresh: bool,
    ) -> Result<(StatusCode, Zeroizing<Vec<u8>>), OutboundError> {
        let request = self
            .service
            .request(Method::POST)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, authorization)
            .body(Bytes::from(asked.request.to_string()));
        self.service.ask(request, is_refresh).await
    }

    /// The members of the response; `None`: there is no such record.
    async fn ask(
        &self,
        asked: &Asked<'_>,
        is_refresh: bool,
    ) -> Result<Option<Map<String, Value>>, LookupFault> {
        let found = match self.send(asked, &self.authorization, is_refresh).await {
            Ok((StatusCode::OK, body)) => members(asked, &body).map(Some),
            Ok((StatusCode::NOT_FOUND, _)) => Ok(None),
            Ok((status, _)) => Err(LookupFault::from(status)),
            Err(error) => Err(error.into()),
        };
        // One bad record says nothing of the others.
        let fault = found.as_ref().err();
        let fault = fault.filter(|fault| !matches!(fault, LookupFault::Record { .. }));
        *self.failing.lock() = fault.map(|fault| causes(fault));
        found
    }

    /// The record of a response, unless it has another name or no secret.
    fn record(
        &self,
        asked: &Asked<'_>,
        mut members: Map<String, Value>,
    ) -> Result<Option<Record>, LookupFault> {
        let [name, secret] = asked.members;
        let unused = |problem| {
            let name = &asked.shown;
            tracing::warn!(name, problem, "a record of store.lookup.url is not used");
            Ok(None)
        };
        // The application may compare without case or trailing spaces. Here, a record has one name.
        if let Some(Value::String(found)) = members.get(name)
            && found != asked.name
        {
            return match self.other_is_logged[0].swap(true, Relaxed) {
                true => Ok(None),
                false => unused(
                    "it has another name, as a comparison without case finds it (logged once)",
                ),
            };
        }
        let base64 = format!("{secret}_base64");
        if [secret, &base64]
            .iter()
            .any(|secret| members.get(*secret) == Some(&json!("")))
        {
            return unused("its secret is empty, so anybody could sign");
        }
        let invalid = |problem| LookupFault::Record {
            name: asked.shown.clone(),
            problem,
        };
        members.retain(|_, member| !member.is_null());
        let kind = members.entry("kind").or_insert_with(|| json!(asked.kind));
        if *kind != asked.kind {
            return Err(invalid(LineError::Kind(kind.to_string())));
        }
        let now = Clock::system().now();
        match asked.kind {
            "token" => match members.remove("revoked") {
                None | Some(Value::Bool(false)) => {}
                Some(Value::Bool(true)) => {
                    members.entry("revoked_at").or_insert_with(|| json!(now));
                }
                Some(other) => {
                    return Err(invalid(LineError::Flag(
                        "revoked".to_owned(),
                        other.to_string(),
                    )));
                }
            },
            _ => {
                members.entry("name").or_insert_with(|| json!(asked.name));
            }
        }
        let defaults = Defaults {
            now,
            ..Defaults::default()
        };
        let (record, _) = export_line::record(members, &defaults).map_err(invalid)?;
        Ok(Some(record))
    }
}

#[async_trait]
impl ExternalRecords for Lookup {
    async fn consumer(&self, key: &ConsumerKey, is_refresh: bool) -> Result<Option<Consumer>> {
        let found = self
            .find(&Asked::consumer(key.as_str()), is_refresh)
            .await?;
        Ok(found.and_then(|record| match record {
            Record::Consumer(consumer) => Some(consumer),
            _ => None,
        }))
    }

    async fn access_token(
        &self,
        token: &str,
        consumer: Option<&ConsumerKey>,
        is_refresh: bool,
    ) -> Result<Option<AccessToken>> {
        let found = self
            .find(&Asked::token(token, consumer), is_refresh)
            .await?;
        let token = found.and_then(|record| match record {
            Record::AccessToken(token) => Some(token),
            _ => None,
        });
        if let (Some(token), Some(consumer)) = (&token, consumer)
            && token.consumer != *consumer
            && !self.other_is_logged[1].swap(true, Relaxed)
        {
            let (name, of) = (RedactedToken(&token.token), &token.consumer);
            tracing::warn!(
                %name, %of, %consumer,
                "a token of store.lookup.url is of another consumer than the call; write the consumer's key, not a number of a row (logged once)"
            );
        }
        Ok(token)
    }
}

/// The members of a response 200.
fn members(asked: &Asked<'_>, body: &[u8]) -> Result<Map<String, Value>, LookupFault> {
    let body = body.trim_ascii();
    if serde_json::from_slice::<IgnoredAny>(body).is_err() {
        return Err(LookupFault::NotJson);
    }
    // Serde would accept a list as an object without the names of its members.
    let members = match body.first() {
        Some(b'{') => distinct_members(body).map_err(LineError::from),
        _ => Err(LineError::NotAnObject),
    };
    members.map_err(|problem| LookupFault::Record {
        name: asked.shown.clone(),
        problem,
    })
}

/// The field that proves who asks, with the secret of a file.
fn authorization(path: &Path) -> Result<HeaderValue, LookupError> {
    let failed = |problem: String| LookupError::Secret {
        path: path.to_owned(),
        problem,
    };
    let secret = Secret::read_line(path).map_err(failed)?;
    let value = Zeroizing::new([b"Bearer ", secret.expose()].concat());
    let value = HeaderValue::from_bytes(&value);
    let mut value = value.map_err(|error| failed(error.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}
