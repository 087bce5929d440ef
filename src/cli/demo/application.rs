//! The demo's application: a consumer like any other, that sends its visitor through the flow and calls the API.
//!
//! It calls the proxy over the network and signs as a consumer does.

use std::{cell::RefCell, collections::HashMap};

use http::Request;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use url::form_urlencoded;

use super::{Accounts, BoxedError};
use crate::{
    cli::{
        context::CommandError,
        request::RequestArgs,
        secret_arg::SecretArg,
        secrets::{Asked, SecretArgs},
        sign::SignArgs,
    },
    clock::Clock,
    respond::OwnResponse,
    secret::Secret,
    server::request::RequestBody,
    telemetry::metrics::Verdict,
};

/// The application.
pub(super) struct DemoApplication {
    authority: String,
    accounts: Accounts,
    /// The secrets of the request tokens under way.
    pending: RefCell<HashMap<String, Secret>>,
}

/// The most visitors in the flow at once; when one more comes, the application forgets them all.
const MAX_PENDING: usize = 1000;

impl DemoApplication {
    /// An application for the proxy at `base`, `http://host:port`.
    pub(super) fn new(base: &str, accounts: Accounts) -> Self {
        Self {
            authority: base.trim_start_matches("http://").to_owned(),
            accounts,
            pending: RefCell::default(),
        }
    }

    /// Responds to a visitor.
    pub(super) async fn answer(&self, request: &Request<RequestBody>) -> OwnResponse {
        let uri = request.uri();
        let page_or_problem = match uri.path() {
            "/" => self.begin().await,
            "/callback" => self.finish(uri.query().unwrap_or_default()).await,
            _ => Ok(page(404, "There is no such page", "")),
        };
        page_or_problem
            .unwrap_or_else(|problem| page(502, "The service refused", &problem.to_string()))
    }

    /// The request token call; then the visitor goes to the authorization page.
    async fn begin(&self) -> Result<OwnResponse, BoxedError> {
        let mut call = self.call("POST", "/oauth/request_token");
        call.callback = Some(self.accounts.callback.clone());
        let issued = self.send(call).await?;
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
    async fn finish(&self, query: &str) -> Result<OwnResponse, BoxedError> {
        let given: HashMap<String, String> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        if given.contains_key("oauth_problem") {
            let text = "You did not let the demo application in, and it got nothing.";
            return Ok(page(200, "Denied", text));
        }
        let (Some(token), Some(verifier)) = (given.get("oauth_token"), given.get("oauth_verifier"))
        else {
            let title = "This is where the authorization page sends you";
            return Ok(page(400, title, "Begin at /."));
        };
        let Some(secret) = self.pending.borrow_mut().remove(token) else {
            let title = "This authorization has been used already";
            return Ok(page(400, title, "Begin again at /."));
        };
        let mut call = self.call("POST", "/oauth/access_token");
        call.verifier = Some(verifier.clone());
        let issued = self.send(with_token(call, token.clone(), secret)).await?;
        let (token, secret) = credentials(&issued)?;
        let call = with_token(self.call("GET", "/members/1"), token, secret);
        let echoed = self.send(call).await?;
        let echoed = String::from_utf8_lossy(&echoed);
        let text =
            format!("This is what reached the API, the user's identity with it:\n\n{echoed}");
        Ok(page(200, "The application is in", &text))
    }

    /// A call without a token, to be signed as `countersign sign` does.
    fn call(&self, method: &str, path: &str) -> SignArgs {
        SignArgs {
            request: RequestArgs {
                method: method.to_owned(),
                url: format!("http://{}{path}", self.authority),
                ..RequestArgs::default()
            },
            consumer_key: self.accounts.consumer.key.to_string(),
            secrets: SecretArgs {
                consumer_secret: Some(SecretArg::Literal(self.accounts.consumer.secret.clone())),
                token_secret: None,
            },
            signature_method: "HMAC-SHA1".to_owned(),
            ..SignArgs::default()
        }
    }

    /// Signs and sends a call and returns the body of the response.
    async fn send(&self, call: SignArgs) -> Result<Vec<u8>, BoxedError> {
        let unused = &mut |_: &Asked<'_>| Err(CommandError::usage("unused"));
        let signed = call.run(&Clock::system(), unused, &mut std::io::empty());
        let signed = signed.map_err(|error| error.to_string())?;
        let RequestArgs { method, url, .. } = &call.request;
        let origin = format!("http://{}", self.authority);
        let path = url.strip_prefix(&origin).unwrap_or(url);
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.authority,
            signed.text.trim_end()
        );
        let mut stream = TcpStream::connect(&self.authority).await?;
        stream.write_all(head.as_bytes()).await?;
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await?;
        let end = memchr::memmem::find(&response, b"\r\n\r\n").ok_or("no response")?;
        let body = response.split_off(end + 4);
        if !response.starts_with(b"HTTP/1.1 200 ") {
            return Err(String::from_utf8_lossy(&body).into_owned().into());
        }
        Ok(body)
    }
}

fn with_token(mut call: SignArgs, token: String, secret: Secret) -> SignArgs {
    call.token = Some(token);
    call.secrets.token_secret = Some(SecretArg::Literal(secret));
    call
}

fn credentials(form: &[u8]) -> Result<(String, Secret), BoxedError> {
    let pairs: HashMap<String, String> = form_urlencoded::parse(form).into_owned().collect();
    match (pairs.get("oauth_token"), pairs.get("oauth_token_secret")) {
        (Some(token), Some(secret)) => Ok((token.clone(), Secret::from(secret.as_str()))),
        _ => Err("the response holds no token".into()),
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
         <h1>{title}</h1><pre style=\"white-space: pre-wrap\">{text}</pre><p><a href=\"/\">Start again</a></p></body></html>\n",
        title = escape(title),
        text = escape(text),
    );
    let mut answer = OwnResponse::new(status, "text/html; charset=utf-8", html, Verdict::Page);
    answer.fields.push(("Cache-Control", "no-store".to_owned()));
    answer
}
