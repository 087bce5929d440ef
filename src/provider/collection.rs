//! Collections of requests with which a developer tries the flow and a signed call, as files for the tools Bruno and Postman.
//!
//! No file has a secret in it: their variables are empty, and the developer fills them in. Both tools sign by themselves; the
//! scripts only keep what a token call responds with for the next request.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    base::file::zip,
    oauth::{MethodSet, SignatureMethod},
    records::values::record::Consumer,
    request::{
        policy::{access::CallerKind, operations::Operations},
        route::{FlowPaths, ServiceCall, TokenCall},
    },
    wire::url::origin::Origin,
};

/// The facts of the service that every collection has.
#[derive(Debug, Clone)]
pub struct CollectionRules {
    /// The origin of token calls and pages.
    pub base: Origin,
    /// The paths of both.
    pub flow: FlowPaths,
    /// The address of the API below which the paths of its operations are, and its root among these paths.
    pub api: [String; 2],
    /// The protected operations.
    pub operations: Arc<Operations>,
    /// The accepted methods.
    pub methods: MethodSet,
}

/// A tool that reads collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Tool {
    /// Bruno, and its `bru run`: a directory of files in the OpenCollection format, in an archive, which its application imports
    /// as it is.
    Bruno,
    /// Postman, and its `newman`: a file in the format Collection v2.1.
    Postman,
}

/// A collection as a file.
#[derive(Debug)]
pub struct Collection {
    /// Its name, which has the consumer's key in it as far as that is letters and digits.
    pub file_name: String,
    /// Its media type.
    pub content_type: &'static str,
    /// Its content.
    pub content: Vec<u8>,
}

/// The methods that both tools have, the preferred ones first.
const METHODS: [SignatureMethod; 7] = [
    SignatureMethod::HmacSha256,
    SignatureMethod::HmacSha1,
    SignatureMethod::HmacSha512,
    SignatureMethod::Plaintext,
    SignatureMethod::RsaSha256,
    SignatureMethod::RsaSha1,
    SignatureMethod::RsaSha512,
];

/// A request of a collection. Its texts are the values of the tools' fields, in which `{{name}}` is a variable.
struct Request {
    /// Its file in Bruno's collection.
    file: &'static str,
    name: &'static str,
    method: &'static str,
    url: &'static str,
    /// The callback, the verifier, the token and its secret.
    credentials: [&'static str; 4],
    description: &'static str,
    /// Reads `status` and `body`, and writes variables with `keep`.
    script: &'static str,
}

const REQUESTS: [Request; 3] = [
    Request {
        file: "1-request-token.yml",
        name: "1 Request token",
        method: "POST",
        url: "{{request_token_url}}",
        credentials: ["{{callback}}", "", "", ""],
        description: "Write the secret into the variable consumer_secret (or the private key into private_key) and send this. Then open the address in the variable \
            open_in_browser, log in and allow it. The page, or the address to which it leads, shows the verifier: write it into the variable verifier.",
        script: "test('the response has a request token', () => {
  const found = tokens(body);
  expect(found.oauth_token, body).to.be.a('string');
  keep('request_token', found.oauth_token);
  keep('request_token_secret', found.oauth_token_secret);
  const address = AUTHORIZATION_PAGE + encodeURIComponent(found.oauth_token);
  keep('open_in_browser', address);
  console.log('Open in a browser: ' + address);
});",
    },
    Request {
        file: "2-access-token.yml",
        name: "2 Access token",
        method: "POST",
        url: "{{access_token_url}}",
        credentials: [
            "",
            "{{verifier}}",
            "{{request_token}}",
            "{{request_token_secret}}",
        ],
        description: "Exchanges the request token that a user has allowed. It needs the variable verifier, and works once.",
        script: "test('the response has an access token', () => {
  const found = tokens(body);
  expect(found.oauth_token, body).to.be.a('string');
  keep('access_token', found.oauth_token);
  keep('access_token_secret', found.oauth_token_secret);
});",
    },
    Request {
        file: "3-signed-call.yml",
        name: "3 Signed call",
        method: "GET",
        url: "{{api_url}}",
        credentials: ["", "", "{{access_token}}", "{{access_token_secret}}"],
        description: "A call to the API for the user. Change the variable api_url to what you want to call.",
        script: "test('the signature is accepted', () => expect(status, body).not.to.equal(401));",
    },
];

/// What is read from a token response.
const TOKENS: &str = "const tokens = (body) => Object.fromEntries(body.split('&')
  .map((pair) => pair.split('=').map(decodeURIComponent)).filter((pair) => pair.length === 2));";

impl Tool {
    /// What of its programming interface the scripts use.
    const fn prologue(self) -> &'static str {
        match self {
            Self::Bruno => {
                "const status = res.getStatus(), body = String(res.getBody());
const keep = (name, value) => bru.setEnvVar(name, value);"
            }
            Self::Postman => {
                "const status = pm.response.code, body = pm.response.text();
const test = (name, check) => pm.test(name, check), expect = pm.expect;
const keep = (name, value) => pm.collectionVariables.set(name, value);"
            }
        }
    }
}

impl CollectionRules {
    /// The collection of a consumer for a tool.
    pub fn collection(&self, tool: Tool, consumer: &Consumer) -> Collection {
        let key = consumer.key.as_str();
        let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "-_".contains(*letter);
        let key = key.chars().filter(is_plain).collect::<String>();
        match tool {
            Tool::Bruno => Collection {
                file_name: format!("{key}.bruno.zip"),
                content_type: "application/zip",
                content: self.bruno(consumer),
            },
            Tool::Postman => Collection {
                file_name: format!("{key}.postman_collection.json"),
                content_type: "application/json",
                content: pretty(&self.postman(consumer)),
            },
        }
    }

    /// The method by which the consumer signs.
    fn method(&self, consumer: &Consumer) -> SignatureMethod {
        let is_accepted = |method: &SignatureMethod| {
            self.methods.contains(*method) && (method.is_rsa() || !consumer.rsa_only)
        };
        METHODS.into_iter().find(is_accepted).unwrap_or_default()
    }

    /// The address of a call that the consumer can try: that of the first operation that it may call with GET for a user, else
    /// the root; empty if it may call neither.
    fn trial_url(&self, consumer: &Consumer) -> String {
        let may_call = |path: &str| {
            let found = self.operations.find(path.as_bytes(), b"GET");
            let needed = found.rules().and_then(|it| it.permission.as_ref());
            found.check_method().is_ok()
                && found.access().admits(CallerKind::Consumer)
                && needed.is_none_or(|needed| consumer.permissions.contains(needed))
        };
        let [below, root] = &self.api;
        let listed = self.operations.listed().iter();
        let paths = listed.map(|operation| operation.rules.path.example());
        let found = paths.chain([root.clone()]).find(|path| may_call(path));
        found.map_or_else(String::new, |path| format!("{below}{path}"))
    }

    /// Each variable with its value, and whether it is a secret.
    fn variables(&self, consumer: &Consumer) -> Vec<(&'static str, String, bool)> {
        let address = |call| format!("{}{}", self.base, self.flow.best_of(call));
        let callbacks = &consumer.callbacks;
        // With oob, the page shows the verifier.
        let callback = callbacks
            .iter()
            .find(|it| *it == "oob")
            .or(callbacks.first());
        let known = [
            ("consumer_key", consumer.key.to_string()),
            ("callback", callback.map_or("oob", |it| it).to_owned()),
            (
                "request_token_url",
                address(ServiceCall::Token(TokenCall::RequestToken)),
            ),
            (
                "access_token_url",
                address(ServiceCall::Token(TokenCall::AccessToken)),
            ),
            ("api_url", self.trial_url(consumer)),
        ];
        let is_rsa = self.method(consumer).is_rsa();
        let own_secret = if is_rsa {
            "private_key"
        } else {
            "consumer_secret"
        };
        let empty = [
            (own_secret, true),
            ("open_in_browser", false),
            ("verifier", false),
            ("request_token", false),
            ("request_token_secret", true),
            ("access_token", false),
            ("access_token_secret", true),
        ];
        // Both tools read {{name}} in a value too, and have no escape for it: such a value is filled in by the developer.
        let literal = |value: String| Some(value).filter(|it| !it.contains("{{"));
        let known = known.map(|(name, value)| (name, literal(value).unwrap_or_default(), false));
        let empty = empty.map(|(name, is_secret)| (name, String::new(), is_secret));
        known.into_iter().chain(empty).collect()
    }

    /// The script that runs after a request.
    fn script(&self, tool: Tool, request: &Request) -> String {
        let page = json!(format!("{}{}", self.base, self.flow.authorization_page()));
        let script = request
            .script
            .replace("AUTHORIZATION_PAGE", &page.to_string());
        [tool.prologue(), TOKENS, &script].join("\n")
    }

    fn postman(&self, consumer: &Consumer) -> Value {
        let method = self.method(consumer);
        let items = REQUESTS.iter().map(|request| {
            let [callback, verifier, token, token_secret] = request.credentials;
            let fields = [
                ("consumerKey", json!("{{consumer_key}}")),
                ("signatureMethod", json!(method.as_str())),
                match method.is_rsa() {
                    true => ("privateKey", json!("{{private_key}}")),
                    false => ("consumerSecret", json!("{{consumer_secret}}")),
                },
                ("callback", json!(callback)),
                ("verifier", json!(verifier)),
                ("token", json!(token)),
                ("tokenSecret", json!(token_secret)),
                ("version", json!("1.0")),
                ("addParamsToHeader", json!(true)),
                ("addEmptyParamsToSign", json!(false)),
            ];
            let fields = fields.map(|(key, value)| {
                let kind = if value.is_boolean() {
                    "boolean"
                } else {
                    "string"
                };
                json!({ "key": key, "value": value, "type": kind })
            });
            let script = self.script(Tool::Postman, request);
            json!({
                "name": request.name,
                "request": {
                    "method": request.method,
                    "header": [],
                    "url": request.url,
                    "auth": { "type": "oauth1", "oauth1": fields },
                    "description": request.description,
                },
                "event": [{
                    "listen": "test",
                    "script": { "type": "text/javascript", "exec": Vec::from_iter(script.lines()) },
                }],
            })
        });
        let variables = self.variables(consumer).into_iter();
        let variables = variables.map(|(key, value, _)| json!({ "key": key, "value": value }));
        json!({
            "info": {
                "name": consumer.name,
                "description": REQUESTS[0].description,
                "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
            },
            "item": Vec::from_iter(items),
            "variable": Vec::from_iter(variables),
        })
    }

    /// Its files are YAML, of which JSON is a part.
    fn bruno(&self, consumer: &Consumer) -> Vec<u8> {
        let method = self.method(consumer);
        let own_secret = match method.is_rsa() {
            true => (
                "privateKey",
                json!({ "type": "text", "value": "{{private_key}}" }),
            ),
            false => ("consumerSecret", json!("{{consumer_secret}}")),
        };
        let requests = REQUESTS.iter().zip(1..).map(|(request, place)| {
            let [callback, verifier, token, token_secret] = request.credentials;
            let content = json!({
                "info": { "name": request.name, "type": "http", "seq": place },
                "http": {
                    "method": request.method,
                    "url": request.url,
                    "auth": {
                        "type": "oauth1",
                        "consumerKey": "{{consumer_key}}",
                        own_secret.0: own_secret.1,
                        "signatureMethod": method.as_str(),
                        "callbackUrl": callback,
                        "verifier": verifier,
                        "accessToken": token,
                        "accessTokenSecret": token_secret,
                        "version": "1.0",
                        "placement": "header",
                        "includeBodyHash": false,
                    },
                },
                "runtime": {
                    "scripts": [{ "type": "tests", "code": self.script(Tool::Bruno, request) }],
                },
                "docs": request.description,
            });
            (request.file, content)
        });
        let variables = self.variables(consumer).into_iter();
        let variables = variables.map(|(name, value, is_secret)| match is_secret {
            true => json!({ "name": name, "secret": true }),
            false => json!({ "name": name, "value": value }),
        });
        let collection = json!({
            "opencollection": "1.0.0",
            "info": { "name": consumer.name, "version": "1" },
            "docs": { "content": REQUESTS[0].description, "type": "text/markdown" },
        });
        let variables = json!({ "name": "service", "variables": Vec::from_iter(variables) });
        let others = [
            ("opencollection.yml", collection),
            ("environments/service.yml", variables),
        ];
        let files = others.into_iter().chain(requests);
        zip::archive(files.map(|(name, content)| (name, pretty(&content))))
    }
}

fn pretty(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}
