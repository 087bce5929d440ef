//! The demo's application: a consumer like any other, that sends its visitor through the flow and calls the API.
//!
//! It calls the proxy over the network and signs as a consumer does.

use std::{cell::RefCell, collections::HashMap};

use askama::Template;
use http::Request;
use serde_json::Value;
use url::form_urlencoded;

use super::{Accounts, BoxedError, traffic};
use crate::{
    base::{clock::Clock, secret::Secret},
    cli::{arguments::secret_source::SecretArg, signature::sign::SignArgs},
    provider::{
        issue::callback,
        respond::OwnResponse,
        theme::{Theme, frame::Frame},
    },
    wire::server::request::RequestBody,
};

/// The application.
pub(super) struct DemoApplication {
    /// The proxy, `host:port`.
    pub(super) authority: String,
    pub(super) accounts: Accounts,
    /// The secrets of the request tokens under way.
    pub(super) pending: RefCell<HashMap<String, Secret>>,
}

#[derive(Template)]
#[template(path = "demo.html")]
struct DemoPage<'a> {
    frame: Frame<'a>,
    title: &'a str,
    text: &'a str,
    /// The fields that identify the caller to the API.
    identity: Vec<(&'a str, &'a str)>,
    /// The request that reached the API.
    seen: &'a str,
    /// The proxy, `host:port`.
    authority: &'a str,
}

/// The most visitors in the flow at once; when one more comes, the application forgets them all.
const MAX_PENDING: usize = 1000;

impl DemoApplication {
    /// Responds to a visitor.
    pub(super) async fn answer(&self, request: &Request<RequestBody>) -> OwnResponse {
        let uri = request.uri();
        let page_or_problem = match uri.path() {
            "/" => self.begin().await,
            "/callback" => self.finish(uri.query().unwrap_or_default()).await,
            _ => Ok(self.page(404, "There is no such page", "", "")),
        };
        page_or_problem.unwrap_or_else(|problem| {
            self.page(502, "The call was rejected", &problem.to_string(), "")
        })
    }

    /// The request token call; then the visitor goes to the authorization page.
    async fn begin(&self) -> Result<OwnResponse, BoxedError> {
        let callback = Some(self.accounts.callback.clone());
        let with_callback = |call: &mut SignArgs| call.callback = callback;
        let issued = self.send("POST", "/oauth/request_token", with_callback);
        let (token, secret) = credentials(&issued.await?)?;
        let page = format!("http://{}/oauth/authorize", self.authority);
        let location = callback::redirect(&page, &[("oauth_token", &token)]);
        let mut pending = self.pending.borrow_mut();
        if pending.len() >= MAX_PENDING {
            pending.clear();
        }
        pending.insert(token, secret);
        Ok(OwnResponse::see_other(location))
    }

    /// The access token call, and a first call to the API.
    async fn finish(&self, query: &str) -> Result<OwnResponse, BoxedError> {
        let given = form_urlencoded::parse(query.as_bytes()).into_owned();
        let given: HashMap<String, String> = given.collect();
        if given.contains_key("oauth_problem") {
            let text = "You denied access. The application got nothing.";
            return Ok(self.page(200, "Denied", text, ""));
        }
        let (Some(token), Some(verifier)) = (given.get("oauth_token"), given.get("oauth_verifier"))
        else {
            let title = "This is where the authorization page sends you";
            return Ok(self.page(400, title, "It begins at the first page.", ""));
        };
        let Some(secret) = self.pending.borrow_mut().remove(token) else {
            let title = "This authorization has been used already";
            return Ok(self.page(400, title, "Each one can be used once.", ""));
        };
        let exchange = |call: &mut SignArgs| {
            call.verifier = Some(verifier.clone());
            authorize(call, token.clone(), secret);
        };
        let issued = self.send("POST", "/oauth/access_token", exchange).await?;
        let (token, secret) = credentials(&issued)?;
        let with_token = |call: &mut SignArgs| authorize(call, token, secret);
        let echoed = self.send("GET", "/members/1", with_token).await?;
        let text = "The application has called the API in the user's name. The API got no signature to check, but this identity:";
        Ok(self.page(200, "The application has access", text, &echoed))
    }

    /// A page; `seen` is the request that the API got, if it was called.
    fn page(&self, status: u16, title: &str, text: &str, seen: &str) -> OwnResponse {
        let request: Value = serde_json::from_str(seen).unwrap_or_default();
        let fields = request["headers"].as_array().into_iter().flatten();
        let fields = fields.filter_map(|field| Some((field[0].as_str()?, field[1].as_str()?)));
        let frame = Frame::in_english(Theme::plain());
        let template = DemoPage {
            frame,
            title,
            text,
            identity: fields
                .filter(|(name, _)| name.starts_with("x-auth-"))
                .collect(),
            seen,
            authority: &self.authority,
        };
        OwnResponse::page(frame, status, &template, "")
    }

    /// Signs a call as `countersign sign` does, sends it and returns the body of the response.
    async fn send(
        &self,
        method: &str,
        path: &str,
        add: impl FnOnce(&mut SignArgs),
    ) -> Result<String, BoxedError> {
        let mut call = traffic::unsigned(&self.authority, method, path, &self.accounts.consumer);
        add(&mut call);
        let fields = traffic::authorization(&call, &Clock::system())?;
        match traffic::send(&self.authority, method, path, &fields).await? {
            (200, body) => Ok(body),
            (_, problem) => Err(problem.into()),
        }
    }
}

fn authorize(call: &mut SignArgs, token: String, secret: Secret) {
    call.token = Some(token);
    call.secrets.token_secret = Some(SecretArg::Literal(secret));
}

fn credentials(form: &str) -> Result<(String, Secret), BoxedError> {
    let pairs = form_urlencoded::parse(form.as_bytes()).into_owned();
    let mut pairs: HashMap<String, String> = pairs.collect();
    let mut take = |name| pairs.remove(name).ok_or("the response holds no token");
    Ok((
        take("oauth_token")?,
        Secret::from(take("oauth_token_secret")?),
    ))
}
