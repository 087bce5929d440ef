//! The demo's application: a consumer like any other, that sends its visitor through the flow and calls the API.
//!
//! It speaks to the proxy over the network and signs as a consumer does; it has no other way in.

use std::{cell::RefCell, collections::HashMap, net::SocketAddr, rc::Rc};

use http::{Request, Response, Uri};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use url::form_urlencoded;

use super::{Accounts, echo};
use crate::{
    clock::Clock,
    issue::random,
    oauth::{
        BaseString, EncodedOrigin, Parameters, Scheme, Selection, SignatureMethod, SigningKey,
        percent, sign,
    },
    peer::Peer,
    respond::OwnResponse,
    secret::Secret,
    server::{
        caller::Limits,
        connection::Handler,
        request::RequestBody,
        response::{Gone, ResponseBody},
    },
    telemetry::metrics::Verdict,
};

/// The application.
pub(super) struct Application {
    authority: String,
    origin: EncodedOrigin,
    consumer_key: String,
    consumer_secret: Secret,
    callback: String,
    /// The secrets of the request tokens under way.
    pending: RefCell<HashMap<String, Secret>>,
}

/// So many visitors may be under way; then the application forgets them all.
const MAX_PENDING: usize = 1000;

type Problem = Box<dyn std::error::Error>;

impl Application {
    /// An application for the proxy at `base`, `http://host:port`.
    pub(super) fn new(base: &str, accounts: &Accounts) -> Self {
        let authority = base.trim_start_matches("http://").to_owned();
        let (host, port) = authority.rsplit_once(':').unwrap_or((&authority, "80"));
        let origin = EncodedOrigin::new(Scheme::Http, host, port.parse().ok());
        Self {
            origin,
            consumer_key: accounts.consumer_key.to_string(),
            consumer_secret: accounts.consumer_secret.clone(),
            callback: accounts.callback.clone(),
            pending: RefCell::default(),
            authority,
        }
    }

    async fn page(&self, uri: &Uri) -> Result<OwnResponse, Problem> {
        match uri.path() {
            "/" => self.begin().await,
            "/callback" => self.finish(uri.query().unwrap_or_default()).await,
            _ => Ok(page(404, "There is no such page", "")),
        }
    }

    /// The request token call; then the visitor goes to the authorization page.
    async fn begin(&self) -> Result<OwnResponse, Problem> {
        let callback = [("oauth_callback", self.callback.as_str())];
        let issued = self
            .call("POST", "/oauth/request_token", &callback, &Secret::from(""))
            .await?;
        let (token, secret) = credentials(&issued)?;
        let mut pending = self.pending.borrow_mut();
        if pending.len() >= MAX_PENDING {
            pending.clear();
        }
        pending.insert(token.clone(), secret);
        let token = form_urlencoded::byte_serialize(token.as_bytes()).collect::<String>();
        let mut answer = page(303, "On to the authorization page", "");
        let location = format!(
            "http://{}/oauth/authorize?oauth_token={token}",
            self.authority
        );
        answer.fields.push(("Location", location));
        Ok(answer)
    }

    /// The access token call, and a first call to the API.
    async fn finish(&self, query: &str) -> Result<OwnResponse, Problem> {
        let given: HashMap<String, String> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        if given.contains_key("oauth_problem") {
            return Ok(page(
                200,
                "Denied",
                "You did not let the demo application in, and it got nothing.",
            ));
        }
        let (Some(token), Some(verifier)) = (given.get("oauth_token"), given.get("oauth_verifier"))
        else {
            return Ok(page(
                400,
                "This is where the authorization page sends you",
                "Begin at /.",
            ));
        };
        let Some(secret) = self.pending.borrow_mut().remove(token) else {
            return Ok(page(
                400,
                "This way has been gone already",
                "Begin again at /.",
            ));
        };
        let shown = [
            ("oauth_token", token.as_str()),
            ("oauth_verifier", verifier),
        ];
        let issued = self
            .call("POST", "/oauth/access_token", &shown, &secret)
            .await?;
        let (token, secret) = credentials(&issued)?;
        let echoed = self
            .call("GET", "/members/1", &[("oauth_token", &token)], &secret)
            .await?;
        let echoed = String::from_utf8_lossy(&echoed).into_owned();
        Ok(page(
            200,
            "The application is in",
            &format!("This is what reached the API, the user's identity with it:\n\n{echoed}"),
        ))
    }

    /// Makes a signed call; the `oauth_` parameters go into the Authorization header.
    async fn call(
        &self,
        method: &str,
        path: &str,
        parameters: &[(&str, &str)],
        token_secret: &Secret,
    ) -> Result<Vec<u8>, Problem> {
        let timestamp = Clock::system().now().0.to_string();
        let nonce = random::identifier()?;
        let mut pairs = vec![
            ("oauth_consumer_key", self.consumer_key.as_str()),
            ("oauth_signature_method", "HMAC-SHA1"),
            ("oauth_timestamp", &timestamp),
            ("oauth_nonce", &nonce),
            ("oauth_version", "1.0"),
        ];
        pairs.extend_from_slice(parameters);
        let mut header = String::from("OAuth ");
        for (name, value) in &pairs {
            header.push_str(&format!(
                "{name}=\"{}\", ",
                percent::encode(value.as_bytes())
            ));
        }
        let mut collected = Parameters::new();
        collected.read_header(header.trim_end_matches([',', ' ']).as_bytes())?;
        let base = BaseString {
            method: method.as_bytes(),
            origin: &self.origin,
            path: path.as_bytes(),
            parameters: &collected,
            selection: Selection::Rfc5849,
        };
        let key = SigningKey::new(&self.consumer_secret, token_secret);
        let signature =
            sign(SignatureMethod::HmacSha1, &key, &base).ok_or("the method signs with a secret")?;
        header.push_str(&format!(
            "oauth_signature=\"{}\"",
            percent::encode(signature.as_bytes())
        ));
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {header}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.authority
        );
        let address: SocketAddr = self.authority.parse()?;
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let end = answer
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .ok_or("no answer")?;
        let body = answer.split_off(end + 4);
        if !answer.starts_with(b"HTTP/1.1 200 ") {
            return Err(String::from_utf8_lossy(&body).into_owned().into());
        }
        Ok(body)
    }
}

fn credentials(form: &[u8]) -> Result<(String, Secret), Problem> {
    let pairs: HashMap<String, String> = form_urlencoded::parse(form).into_owned().collect();
    match (pairs.get("oauth_token"), pairs.get("oauth_token_secret")) {
        (Some(token), Some(secret)) => Ok((token.clone(), Secret::from(secret.as_str()))),
        _ => Err("the answer holds no token".into()),
    }
}

fn page(status: u16, title: &str, text: &str) -> OwnResponse {
    let escape = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
    };
    let html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><body style=\"font-family: system-ui; max-width: 45rem; margin: 3rem auto; padding: 0 1rem\">\
         <h1>{title}</h1><pre style=\"white-space: pre-wrap\">{text}</pre><p><a href=\"/\">Begin anew</a></p></body></html>\n",
        title = escape(title),
        text = escape(text),
    );
    let mut answer = OwnResponse::new(status, "text/html; charset=utf-8", html, Verdict::Page);
    answer.fields.push(("Cache-Control", "no-store".to_owned()));
    answer
}

impl Handler for Application {
    fn limits(&self) -> Limits {
        echo::LIMITS
    }

    fn is_draining(&self) -> bool {
        false
    }

    async fn drained(&self) {
        std::future::pending().await
    }

    async fn answer(
        self: Rc<Self>,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Gone> {
        let answer = match self.page(request.uri()).await {
            Ok(answer) => answer,
            Err(problem) => page(502, "The service refused", &problem.to_string()),
        };
        Ok(answer.into_response(request.method()))
    }

    fn rejected(&self, _: Peer, _: u16, _: &str) {}
}
