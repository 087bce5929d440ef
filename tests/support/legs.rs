//! The three legs of the flow, each as one step.

use super::{
    call::Call,
    http::Answer,
    proxy::{Consumer, Proxy, Token, User},
    signer::encode,
    visitor::{Page, Visitor},
};

/// The service's pages and endpoints.
pub const LOGIN: &str = "/service.oauth?mode=login";
pub const APPLICATIONS: &str = "/service.oauth?mode=applications";
pub const LOGOUT: &str = "/service.oauth?mode=logout";
pub const PASSWORD: &str = "/service.oauth?mode=password";
pub const REQUEST_TOKEN: &str = "/service.oauth?mode=req_req_token";
pub const ACCESS_TOKEN: &str = "/service.oauth?mode=req_acc_token";
pub const REVOKE_TOKEN: &str = "/service.oauth?mode=revoke_token";

/// The pages for users that none of these addresses is of, by the `mode` that names them. A test of every page names those
/// that it leaves out, so that it cannot forget a new one.
pub fn pages_not_among(proxy: &Proxy, targets: &[String]) -> Vec<String> {
    let answer = proxy.served(Call::get("/service.oauth?mode=none"));
    let advice = answer.form("oauth_problem_advice").expect("advice");
    let (_, modes) = advice.split_once(" is one of ").expect("every mode");
    let is_page = |mode: &&str| {
        let answer = proxy.served(Call::new("HEAD", &format!("/service.oauth?mode={mode}")));
        let kinds = answer.fields.all("content-type");
        kinds.iter().any(|kind| kind.starts_with("text/html"))
    };
    let pages = modes.split(", ").filter(is_page);
    let is_left_out = |mode: &&str| {
        let named = format!("mode={mode}");
        let mut targets = targets.iter();
        !targets.any(|target| target.split(['?', '&']).any(|part| part == named))
    };
    pages.filter(is_left_out).map(str::to_owned).collect()
}

/// A token response: the pair that it brings.
#[track_caller]
pub fn token_of(answer: &Answer) -> Token {
    answer.has_status(200);
    let part = |name: &str| answer.form(name).expect("a token and its secret");
    Token::new(part("oauth_token"), part("oauth_token_secret"))
}

/// A call for a request token.
pub fn asks(consumer: &Consumer, callback: &str) -> Call {
    Call::post(REQUEST_TOKEN)
        .by(consumer)
        .parameter("oauth_callback", callback)
}

/// A call that exchanges a request token.
pub fn exchanges(consumer: &Consumer, request_token: &Token, verifier: &str) -> Call {
    Call::post(ACCESS_TOKEN)
        .by(consumer)
        .with(request_token)
        .parameter("oauth_verifier", verifier)
}

/// The address that a user is sent to.
pub fn authorization(request_token: &Token) -> String {
    format!(
        "/service.oauth?mode=auth_req_token&oauth_token={}",
        encode(&request_token.token)
    )
}

impl Proxy {
    /// First leg.
    #[track_caller]
    pub fn request_token(&self, consumer: &Consumer, callback: &str) -> Token {
        token_of(&self.served(asks(consumer, callback)))
    }

    /// Second leg: the user logs in and is asked; the browser and the page.
    #[track_caller]
    pub fn consent(&self, request_token: &Token, user: &User) -> (Visitor<'_>, Page) {
        let mut visitor = Visitor::to(self);
        let login = visitor.open(&authorization(request_token));
        let consent = visitor.log_in(&login, user);
        (visitor, consent)
    }

    /// Second leg: the user logs in and decides; the page or redirect that follows.
    #[track_caller]
    pub fn decision(&self, request_token: &Token, user: &User, decision: &str) -> Page {
        let (mut visitor, consent) = self.consent(request_token, user);
        visitor.decide(&consent, decision)
    }

    /// Second leg with `allow`: the verifier, from the callback or from the page.
    #[track_caller]
    pub fn verifier(&self, request_token: &Token, user: &User) -> String {
        let page = self.decision(request_token, user, "allow");
        let verifier = match page.answer.status {
            200 => page.element("verifier"),
            _ => query_value(&page.redirect(), "oauth_verifier"),
        };
        verifier.unwrap_or_else(|| panic!("a verifier: {page:?}"))
    }
}

/// A value of an address's query, decoded.
pub fn query_value(address: &str, name: &str) -> Option<String> {
    let query = address.split_once('?')?.1;
    let pairs = super::signer::form_pairs(query.split('#').next()?.as_bytes());
    let value = pairs.into_iter().find(|(n, _)| n == name.as_bytes())?.1;
    Some(String::from_utf8(value).unwrap())
}
