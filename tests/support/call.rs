//! A request under construction: what to send, how to sign it, and what to spoil.

use std::path::PathBuf;

use super::{
    fresh,
    http::in_chunks,
    now,
    proxy::{Caller, Consumer, Token},
    signer::{self, Pair, encode},
};

/// The type of a form.
pub const FORM: &str = "application/x-www-form-urlencoded";

/// The place of the protocol parameters (RFC 5849 section 3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    Header,
    Query,
    Body,
}

/// The framing of a body.
#[derive(Debug, Clone)]
enum Body {
    None,
    Length(Vec<u8>),
    Chunked(Vec<Vec<u8>>),
}

/// A request. Without [`Call::by`] it is sent unsigned.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: String,
    target: String,
    host: Option<String>,
    fields: Vec<(String, String)>,
    body: Body,
    signing: Option<Signing>,
}

#[derive(Debug, Clone)]
struct Signing {
    consumer_key: String,
    consumer_secret: String,
    token: Option<String>,
    token_secret: String,
    method: String,
    rsa_key: Option<PathBuf>,
    placement: Placement,
    realm: Option<String>,
    parameters: Vec<(String, String)>,
    left_out: Vec<String>,
    key: Option<String>,
    origin: Option<String>,
    signed_method: Option<String>,
    signed_target: Option<String>,
    signed_body: Option<Vec<u8>>,
    as_described: bool,
    spoiled: Vec<(String, String)>,
}

impl Call {
    pub fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            host: None,
            fields: Vec::new(),
            body: Body::None,
            signing: None,
        }
    }

    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub fn post(target: &str) -> Self {
        Self::new("POST", target)
    }

    /// Signs by the consumer alone.
    pub fn by(mut self, consumer: &Consumer) -> Self {
        self.signing = Some(Signing {
            consumer_key: consumer.key.clone(),
            consumer_secret: consumer.secret.clone(),
            token: None,
            token_secret: String::new(),
            method: "HMAC-SHA1".to_owned(),
            rsa_key: None,
            placement: Placement::Header,
            realm: None,
            parameters: Vec::new(),
            left_out: Vec::new(),
            key: None,
            origin: None,
            signed_method: None,
            signed_target: None,
            signed_body: None,
            as_described: false,
            spoiled: Vec::new(),
        });
        self
    }

    /// Signs with the consumer and the access token of the caller.
    pub fn of(self, caller: &Caller) -> Self {
        self.by(&caller.consumer).with(&caller.token)
    }

    /// Signs with the token too, a request token or an access token.
    pub fn with(self, token: &Token) -> Self {
        self.signing(|signing| {
            signing.token = Some(token.token.clone());
            signing.token_secret = token.secret.clone();
        })
    }

    /// Places the protocol parameters there.
    pub fn placed(self, placement: Placement) -> Self {
        self.signing(|signing| signing.placement = placement)
    }

    /// Signs by this method, in this spelling.
    pub fn method(self, method: &str) -> Self {
        self.signing(|signing| signing.method = method.to_owned())
    }

    /// Signs by this RSA method with the private key in that file.
    pub fn rsa(self, method: &str, private_key: &std::path::Path) -> Self {
        self.signing(|signing| {
            signing.method = method.to_owned();
            signing.rsa_key = Some(private_key.to_owned());
        })
    }

    /// Adds a protocol parameter or sets one, before it is signed.
    pub fn parameter(self, name: &str, value: &str) -> Self {
        self.signing(|signing| signing.parameters.push((name.to_owned(), value.to_owned())))
    }

    /// Leaves a protocol parameter out, of the signature as well.
    pub fn without(self, name: &str) -> Self {
        self.signing(|signing| signing.left_out.push(name.to_owned()))
    }

    pub fn realm(self, realm: &str) -> Self {
        self.signing(|signing| signing.realm = Some(realm.to_owned()))
    }

    /// Signs with this key, whatever the secrets are.
    pub fn key(self, key: &str) -> Self {
        self.signing(|signing| signing.key = Some(key.to_owned()))
    }

    /// Signs for this origin, not for the one that is called.
    pub fn for_origin(self, origin: &str) -> Self {
        self.signing(|signing| signing.origin = Some(origin.to_owned()))
    }

    /// Signs another method than the one sent.
    pub fn signs_method(self, method: &str) -> Self {
        self.signing(|signing| signing.signed_method = Some(method.to_owned()))
    }

    /// Signs another target than the one sent.
    pub fn signs_target(self, target: &str) -> Self {
        self.signing(|signing| signing.signed_target = Some(target.to_owned()))
    }

    /// Signs another form body than the one sent.
    pub fn signs_body(self, body: &str) -> Self {
        self.signing(|signing| signing.signed_body = Some(body.as_bytes().to_vec()))
    }

    /// Signs as the service's description says: the oauth_ parameters and those of a form body, not the query.
    pub fn signed_as_described(self) -> Self {
        self.signing(|signing| signing.as_described = true)
    }

    /// Sets a protocol parameter after everything was signed.
    pub fn spoiled(self, name: &str, value: &str) -> Self {
        self.signing(|signing| signing.spoiled.push((name.to_owned(), value.to_owned())))
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends this token in the Authorization field.
    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    /// Sends another Host than the proxy's address.
    pub fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    pub fn form(self, body: &str) -> Self {
        self.body(FORM, body.as_bytes())
    }

    pub fn json(self, body: &str) -> Self {
        self.body("application/json", body.as_bytes())
    }

    pub fn body(mut self, content_type: &str, body: &[u8]) -> Self {
        self.body = Body::Length(body.to_vec());
        self.header("Content-Type", content_type)
    }

    /// A body with `Content-Length` and no type.
    pub fn bytes(mut self, body: &[u8]) -> Self {
        self.body = Body::Length(body.to_vec());
        self
    }

    /// A body in these chunks.
    pub fn chunked(mut self, chunks: &[&[u8]]) -> Self {
        self.body = Body::Chunked(chunks.iter().map(|chunk| chunk.to_vec()).collect());
        self
    }

    fn signing(mut self, change: impl FnOnce(&mut Signing)) -> Self {
        change(self.signing.as_mut().expect("`by` comes first"));
        self
    }

    /// The bytes of the request, signed for `origin`, with this Host.
    pub fn wire(&self, origin: &str, host: &str) -> Vec<u8> {
        let mut target = self.target.clone();
        let mut fields = self.fields.clone();
        let mut body = self.body.clone();
        if let Some(signing) = &self.signing {
            let parameters = signing.sign(self, origin);
            match signing.placement {
                Placement::Header => {
                    fields.insert(0, ("Authorization".to_owned(), signing.header(&parameters)))
                }
                Placement::Query => {
                    target.push(if target.contains('?') { '&' } else { '?' });
                    target.push_str(&form(&parameters));
                }
                Placement::Body => {
                    let mut text = self.plain_body();
                    if !text.is_empty() {
                        text.push(b'&');
                    }
                    text.extend(form(&parameters).into_bytes());
                    if !fields.iter().any(|(name, _)| is_type(name)) {
                        fields.push(("Content-Type".to_owned(), FORM.to_owned()));
                    }
                    body = match body {
                        Body::Chunked(_) => Body::Chunked(vec![text]),
                        Body::None | Body::Length(_) => Body::Length(text),
                    };
                }
            }
        }
        let host = self.host.as_deref().unwrap_or(host);
        let mut out = format!("{} {target} HTTP/1.1\r\nHost: {host}\r\n", self.method).into_bytes();
        for (name, value) in &fields {
            out.extend(format!("{name}: {value}\r\n").into_bytes());
        }
        match body {
            Body::None => out.extend(b"\r\n"),
            Body::Length(body) => {
                out.extend(format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes());
                out.extend(body);
            }
            Body::Chunked(chunks) => {
                out.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                out.extend(in_chunks(&chunks));
            }
        }
        out
    }

    fn plain_body(&self) -> Vec<u8> {
        match &self.body {
            Body::None => Vec::new(),
            Body::Length(body) => body.clone(),
            Body::Chunked(chunks) => chunks.concat(),
        }
    }

    fn has_form(&self) -> bool {
        let is_form = |value: &str| value.to_ascii_lowercase().starts_with(FORM);
        let mut fields = self.fields.iter();
        fields.any(|(name, value)| is_type(name) && is_form(value))
    }
}

fn is_type(name: &str) -> bool {
    name.eq_ignore_ascii_case("content-type")
}

impl Signing {
    /// The protocol parameters of the request, the signature among them.
    fn sign(&self, call: &Call, origin: &str) -> Vec<(String, String)> {
        let mut parameters = vec![("oauth_consumer_key".to_owned(), self.consumer_key.clone())];
        if let Some(token) = &self.token {
            set(&mut parameters, "oauth_token", token);
        }
        set(&mut parameters, "oauth_signature_method", &self.method);
        set(&mut parameters, "oauth_timestamp", &now().to_string());
        set(&mut parameters, "oauth_nonce", &fresh("n"));
        set(&mut parameters, "oauth_version", "1.0");
        for (name, value) in &self.parameters {
            set(&mut parameters, name, value);
        }
        parameters.retain(|(name, _)| !self.left_out.contains(name));

        let pairs = parameters.iter().cloned();
        let mut signed: Vec<Pair> = pairs.map(|(n, v)| (n.into(), v.into())).collect();
        let target = self.signed_target.as_ref().unwrap_or(&call.target);
        if let Some((_, query)) = target.split_once('?')
            && !self.as_described
        {
            signed.extend(signer::form_pairs(query.as_bytes()));
        }
        if let Some(body) = &self.signed_body {
            signed.extend(signer::form_pairs(body));
        } else if call.has_form() || self.placement == Placement::Body {
            signed.extend(signer::form_pairs(&call.plain_body()));
        }
        let url = format!("{}{target}", self.origin.as_deref().unwrap_or(origin));
        let method = self.signed_method.as_ref().unwrap_or(&call.method);
        let base = signer::base_string(method, &signer::base_uri(&url), &signed);
        let key = [&self.consumer_secret, &self.token_secret]
            .map(encode)
            .join("&");
        let signature = match &self.rsa_key {
            Some(private_key) => signer::rsa_signature(&self.method, private_key, &base),
            None => signer::signature(&self.method, self.key.as_ref().unwrap_or(&key), &base),
        };
        if !self.left_out.iter().any(|name| name == "oauth_signature") {
            parameters.push(("oauth_signature".to_owned(), signature));
        }
        for (name, value) in &self.spoiled {
            set(&mut parameters, name, value);
        }
        parameters
    }

    fn header(&self, parameters: &[(String, String)]) -> String {
        let realm = self.realm.iter().map(|realm| format!("realm=\"{realm}\""));
        let pair =
            |(name, value): &(String, String)| format!("{}=\"{}\"", encode(name), encode(value));
        let rest = parameters.iter().map(pair);
        format!("OAuth {}", realm.chain(rest).collect::<Vec<_>>().join(", "))
    }
}

fn set(parameters: &mut Vec<(String, String)>, name: &str, value: &str) {
    match parameters.iter_mut().find(|(n, _)| n == name) {
        Some(parameter) => value.clone_into(&mut parameter.1),
        None => parameters.push((name.to_owned(), value.to_owned())),
    }
}

/// Pairs as a form.
pub fn form(pairs: &[(String, String)]) -> String {
    let pairs = pairs
        .iter()
        .map(|(n, v)| format!("{}={}", encode(n), encode(v)));
    pairs.collect::<Vec<_>>().join("&")
}
