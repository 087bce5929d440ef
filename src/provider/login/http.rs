//! Logins that another system checks: name and password are posted to `login.url`.
//!
//! One response is a login: 200 with a JSON object that has the user's id. Everything else is a rejection or a fault. An
//! attempt counts as failed as soon as the endpoint may have seen the password, even if it then hangs or breaks: else an
//! endpoint that fails on wrong passwords could be asked without end.

use std::{io, net::IpAddr, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use serde::Serializer as _;
use serde_json::Value;
use tokio::time::Instant;
use url::form_urlencoded;
use zeroize::Zeroizing;

use super::{
    Login, LoginBackend, LoginError, LoginFault,
    pending_checks::PendingChecks,
    settings::{Encoding, LoginMethod, PasswordCheckSettings},
};
use crate::{
    base::{clock::Clock, network::tls::TlsFiles, secret::Secret},
    provider::issue::registration,
    records::{
        store::Store,
        values::{record::OutsideUser, use_cases::Admitted},
    },
    wire::{
        address::EndpointUrl,
        outbound::{OutboundError, RemoteService, tls::remote_service},
        server::tls::TlsError,
    },
};

/// The most attempts that may wait for the endpoint, a quarter of them from one address; one more is rejected as busy.
const MAX_ATTEMPTS: usize = 64;

/// The endpoint.
#[derive(Clone)]
pub struct LoginEndpoint {
    /// The server.
    pub target: RemoteService,
    /// The URL.
    pub url: EndpointUrl,
    /// The format of requests and responses, and the time for an attempt.
    pub settings: PasswordCheckSettings,
}

impl LoginEndpoint {
    /// The endpoint of `login.url`, if it checks passwords.
    ///
    /// # Errors
    /// A file of `login.ca`.
    pub fn new(settings: &PasswordCheckSettings) -> Result<Option<Self>, TlsError> {
        let is_http = settings.backend == LoginMethod::Http;
        let Some(url) = settings.url.as_ref().filter(|_| is_http) else {
            return Ok(None);
        };
        let files = TlsFiles {
            ca: settings.ca.clone(),
            identity: None,
        };
        Ok(Some(Self {
            target: remote_service(&url.server, &files, ["login.ca"; 3])?,
            url: url.clone(),
            settings: settings.clone(),
        }))
    }
}

/// Checks passwords at an endpoint, and records the users it names.
pub struct HttpLogin {
    endpoint: LoginEndpoint,
    store: Arc<Store>,
    clock: Clock,
    pending: Arc<PendingChecks>,
}

impl HttpLogin {
    /// Asks this endpoint.
    pub fn new(endpoint: LoginEndpoint, store: Arc<Store>, clock: Clock) -> Self {
        Self {
            endpoint,
            store,
            clock,
            pending: PendingChecks::new(MAX_ATTEMPTS),
        }
    }

    fn request(&self, name: &str, password: &Secret) -> Result<Request<Bytes>, LoginFault> {
        let fields = &self.endpoint.settings;
        let password = password.expose_text();
        let pairs = [
            (&fields.username_field, name),
            (&fields.password_field, &*password),
        ];
        let length = pairs.iter().map(|(name, value)| name.len() + value.len());
        // A byte takes at most six, as \u001f does. A text that grew would leave a copy of the password.
        let room = length.sum::<usize>() * 6 + 16;
        let (kind, body) = match self.endpoint.settings.request {
            Encoding::Form => {
                let mut form = form_urlencoded::Serializer::new(String::with_capacity(room));
                form.extend_pairs(pairs);
                (
                    "application/x-www-form-urlencoded",
                    form.finish().into_bytes(),
                )
            }
            Encoding::Json => {
                let mut object = Vec::with_capacity(room);
                let written = serde_json::Serializer::new(&mut object).collect_map(pairs);
                written.map_err(|error| LoginFault::Unreachable(error.into()))?;
                ("application/json", object)
            }
        };
        // It is wiped once it has been sent.
        let body = Bytes::from_owner(Zeroizing::new(body));
        let LoginEndpoint { target, url, .. } = &self.endpoint;
        target
            .request(Method::POST, &url.path)
            .header(header::CONTENT_TYPE, kind)
            .body(body)
            .map_err(|_| LoginFault::Unreachable(io::ErrorKind::InvalidInput.into()))
    }
}

/// Connects, with TLS where the URL asks for it, and sends nothing.
///
/// # Errors
/// The endpoint cannot be reached within `login.timeout`, or is another one by its certificate.
pub async fn reach(endpoint: &LoginEndpoint) -> io::Result<()> {
    let deadline = Instant::now() + endpoint.settings.timeout;
    endpoint.target.connect(deadline).await.map(drop)
}

impl From<OutboundError> for LoginFault {
    fn from(error: OutboundError) -> Self {
        match error {
            OutboundError::Unreachable(error) => Self::Unreachable(error),
            OutboundError::Busy | OutboundError::TooSlow => Self::TooSlow,
            OutboundError::NoResponse(error) => Self::NoResponse(error.into()),
            OutboundError::TooLong => Self::Response("is longer than 64 KiB"),
        }
    }
}

#[async_trait]
impl LoginBackend for HttpLogin {
    async fn login(
        &self,
        address: IpAddr,
        name: &str,
        password: Secret,
    ) -> Result<Login, LoginError> {
        let _check = self.pending.admit(Some(address)).ok_or(LoginError::Busy)?;
        let deadline = Instant::now() + self.endpoint.settings.timeout;
        let request = self.request(name, &password)?;
        let response = self.endpoint.target.ask(request, deadline).await;
        let (status, body) = response.map_err(LoginFault::from)?;
        let Some(user) = read(status, &body, &self.endpoint.settings)? else {
            return Err(LoginError::Rejected { account: None });
        };
        let (id, given) = (user.id.clone(), user.name.clone());
        let admitted = self.store.admit_user(user, self.clock.now()).await;
        match admitted.map_err(LoginFault::Store)? {
            Admitted::User(user) if user.enabled => {
                if let Some(name) = given.filter(|given| *given != user.name) {
                    let known = &user.name;
                    tracing::warn!(
                        user = %id, name, known, "login.url gives the name of another user; the known name is kept"
                    );
                }
                let rehashed = None;
                return Ok(Login { user, rehashed });
            }
            Admitted::User(_) => {}
            Admitted::Removed => {
                tracing::warn!(user = %id, "login.url names a user who was removed here");
            }
        }
        Err(LoginError::Rejected { account: Some(id) })
    }
}

/// Reads a response: the user, or `None` for a wrong password.
fn read(
    status: StatusCode,
    body: &[u8],
    fields: &PasswordCheckSettings,
) -> Result<Option<OutsideUser>, LoginFault> {
    match status {
        StatusCode::OK => {}
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            return Err(LoginFault::Status(status));
        }
        status if status.is_client_error() => return Ok(None),
        status => return Err(LoginFault::Status(status)),
    }
    let response: Value =
        serde_json::from_slice(body).map_err(|_| LoginFault::Response("is not JSON"))?;
    let field = |path: &str| {
        let mut keys = path.split('.');
        let found = keys.try_fold(&response, |value, key| value.get(key));
        found.filter(|value| !value.is_null())
    };
    let is_success = |path: &String| field(path) == Some(&Value::Bool(true));
    let reports_error = field("error").is_some_and(|error| *error != Value::Bool(false));
    if reports_error || !fields.success_field.iter().all(is_success) {
        return Ok(None);
    }
    let id = match field(&fields.id_field) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) if !number.is_f64() => number.to_string(),
        Some(_) => {
            let problem = "has an id that is neither a text nor a whole number";
            return Err(LoginFault::Response(problem));
        }
        None => {
            tracing::warn!(
                "login.url responded 200 without login.id_field, which counts as a wrong password"
            );
            return Ok(None);
        }
    };
    let impossible = "has an id that cannot be a user's id here";
    let id = id.parse().map_err(|_| LoginFault::Response(impossible))?;
    let name = field(&fields.name_field).map(|name| {
        let name = name
            .as_str()
            .and_then(|name| registration::login_name(name).ok());
        name.ok_or(LoginFault::Response(
            "has a name that cannot be a user's name",
        ))
    });
    let display_name = field(&fields.display_name_field).and_then(Value::as_str);
    Ok(Some(OutsideUser {
        id,
        name: name.transpose()?,
        display_name: display_name.and_then(|text| registration::shown_name(text.trim()).ok()),
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{base::text::names::NameEncoding, provider::login::settings::LoginMethod};

    fn fields() -> PasswordCheckSettings {
        PasswordCheckSettings {
            backend: LoginMethod::Http,
            url: None,
            request: Encoding::Form,
            username_field: "username".to_owned(),
            password_field: "password".to_owned(),
            id_field: "user.id".to_owned(),
            name_field: "user.name".to_owned(),
            display_name_field: "user.full".to_owned(),
            success_field: None,
            timeout: Duration::from_secs(5),
            ca: Vec::new(),
        }
    }

    fn read_ok(
        body: &str,
        fields: &PasswordCheckSettings,
    ) -> Result<Option<OutsideUser>, LoginFault> {
        read(StatusCode::OK, body.as_bytes(), fields)
    }

    #[test]
    fn nothing_else_is_a_login() {
        NameEncoding::None.set();
        for body in [
            "{}",
            "[]",
            "7",
            r#"{"id":"ada"}"#,
            r#"{"user":{"id":null}}"#,
            r#"{"user":{"id":"ada"},"error":"wrong password"}"#,
            r#"{"user":{"id":"ada"},"error":{"code":1}}"#,
        ] {
            assert!(read_ok(body, &fields()).unwrap().is_none(), "{body}");
        }
        for body in [
            "",
            "ok",
            "<html>Log in</html>",
            r#"{"user":{"id":"ada"}} {"user":{"id":"bob"}}"#,
            r#"{"user":{"id":""}}"#,
            r#"{"user":{"id":"ada\r\nX-Admin: 1"}}"#,
            r#"{"user":{"id":"ada "}}"#,
            r#"{"user":{"id":"ad\u0430"}}"#,
            r#"{"user":{"id":".."}}"#,
            r#"{"user":{"id":"ada;admin"}}"#,
            r#"{"user":{"id":true}}"#,
            r#"{"user":{"id":1.5}}"#,
            r#"{"user":{"id":["ada"]}}"#,
            r#"{"user":{"id":"ada","name":"a\nb"}}"#,
            r#"{"user":{"id":"ada","name":7}}"#,
        ] {
            assert!(read_ok(body, &fields()).is_err(), "{body}");
        }
        let right = br#"{"user":{"id":"ada"}}"#;
        for status in [400, 401, 403, 404, 422] {
            let status = StatusCode::from_u16(status).unwrap();
            assert!(
                read(status, right, &fields()).unwrap().is_none(),
                "{status}"
            );
        }
        for status in [201, 204, 302, 303, 408, 429, 500, 503] {
            let status = StatusCode::from_u16(status).unwrap();
            assert!(read(status, right, &fields()).is_err(), "{status}");
        }
    }

    #[test]
    fn what_must_be_true_is_true_and_not_like_it() {
        let fields = PasswordCheckSettings {
            success_field: Some("ok".to_owned()),
            ..fields()
        };
        let is_login = |ok: &str| {
            let body = format!(r#"{{"user":{{"id":"ada"}}{ok}}}"#);
            read_ok(&body, &fields).unwrap().is_some()
        };
        assert!(is_login(r#","ok":true"#));
        for other in [
            "",
            r#","ok":false"#,
            r#","ok":"true""#,
            r#","ok":1"#,
            r#","ok":null"#,
        ] {
            assert!(!is_login(other), "{other}");
        }
    }
}
