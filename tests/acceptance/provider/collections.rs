//! The collections for developers, run by Bruno's and Postman's own command lines.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

use crate::support::{
    Answer, Call, Consumer, Proxy, Token, Upstream, User, Visitor, has, http::latin1, installed,
    legs::authorization, signer::form_pairs,
};

const CONFIG: &str = "
registration.mode = 'open'

[[permission]]
name = 'members.read'

[[operation]]
path = '/upload'
methods = ['POST']

[[operation]]
path = '/members/{id}'
permission = 'members.read'
";

struct Stage {
    api: Upstream,
    proxy: Proxy,
    user: User,
    directory: tempfile::TempDir,
}

/// Names and values.
type Variables<'v> = [(&'v str, &'v str)];

/// A tool that has a collection, and runs requests of it.
struct Tool<'a> {
    stage: &'a Stage,
    consumer: &'a Consumer,
    run: fn(&Tool<'_>, &[&str], &Variables<'_>) -> Output,
    /// The body of the response to the first request of the last run.
    body: fn(&Tool<'_>) -> String,
    /// The address of the page that it names, if that is kept.
    page: fn(&Tool<'_>) -> Option<String>,
}

impl Stage {
    fn start(config: &str) -> Self {
        Self::with(&format!("{config}{CONFIG}"))
    }

    fn with(config: &str) -> Self {
        let api = Upstream::start();
        let proxy = Proxy::with(&api, config);
        let user = proxy.user("alice");
        let directory = tempfile::tempdir().unwrap();
        Self {
            api,
            proxy,
            user,
            directory,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn consumer(&self) -> Consumer {
        self.proxy
            .consumer_with("Photo printer", "--callback oob --permission members.read")
    }

    /// The file that the page for developers hands over.
    fn downloaded(&self, consumer: &Consumer, tool: &str) -> Answer {
        let made = self
            .proxy
            .run(&format!("consumer link {} --json", consumer.key));
        let url = made.json()["url"].as_str().unwrap().to_owned();
        let link = &url[url.find("/service.oauth").unwrap()..];
        let page = self.proxy.send(Call::get(link)).has_status(200).text();
        let offered = format!("&amp;collection={tool}\"");
        has(&page.replace("&#38;", "&amp;"), &[&offered]);
        let file = self
            .proxy
            .send(Call::get(&format!("{link}&collection={tool}")));
        assert_eq!(file.header("cache-control"), Some("no-store"));
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
        file.has_status(200).clone()
    }
}

impl Tool<'_> {
    /// Runs requests of the collection with these variables, all of which have to succeed.
    fn runs(&self, requests: &[&str], variables: &[(&str, &str)]) -> String {
        let secret = ("consumer_secret", &*self.consumer.secret);
        let ended = (self.run)(self, requests, &[variables, &[secret]].concat());
        let said = latin1(&ended.stdout);
        assert!(ended.status.success(), "{said}{}", latin1(&ended.stderr));
        said
    }

    /// What Bruno keeps of the variables.
    fn variables(&self) -> String {
        fs::read_to_string(self.stage.path("bruno/environments/service.yml")).unwrap()
    }

    /// The three calls of the flow, with the user's part between them, and a signed call.
    fn walks(&self, names: [&str; 3]) {
        let (stage, before) = (self.stage, self.stage.api.count());
        self.runs(&names[..1], &[]);
        let body = (self.body)(self);
        let pairs = form_pairs(body.as_bytes());
        let value = |name: &str| {
            let pair = pairs.iter().find(|(known, _)| known == name.as_bytes());
            String::from_utf8(pair.expect(name).1.clone()).unwrap()
        };
        let (token, secret) = (value("oauth_token"), value("oauth_token_secret"));
        let mut visitor = Visitor::to(&stage.proxy);
        let login = match (self.page)(self) {
            Some(address) => visitor.open(address.strip_prefix(&stage.proxy.origin()).unwrap()),
            None => visitor.open(&authorization(&Token::new(&*token, &*secret))),
        };
        let consent = visitor.log_in(&login, &stage.user);
        let verifier = visitor.decide(&consent, "allow").element("verifier");
        let variables = [
            ("request_token", &*token),
            ("request_token_secret", &*secret),
            ("verifier", &*verifier.expect("a verifier")),
        ];
        assert_eq!(stage.api.count(), before);
        self.runs(&names[1..], &variables);
        let seen = stage.api.last_request();
        assert_eq!(
            (seen.method.as_str(), seen.target.as_str()),
            ("GET", "/members/1")
        );
        assert_eq!(seen.header("x-auth-user"), Some(&*stage.user.id));
        assert_eq!(seen.header("x-auth-consumer"), Some(&*self.consumer.key));
        assert_eq!(stage.api.count(), before + 1);
        // A used verifier, and a wrong secret: the tools say that the run failed.
        for (requests, secret) in [
            (&names[1..2], &*self.consumer.secret),
            (&names[..1], "wrong"),
        ] {
            let variables = [&variables[..], &[("consumer_secret", secret)]].concat();
            let ended = (self.run)(self, requests, &variables);
            assert!(!ended.status.success(), "{}", latin1(&ended.stdout));
        }
    }
}

/// The command line of a tool.
fn tool(program: &str) -> Command {
    let mut command = Command::new("node");
    command
        .arg("--require")
        .arg(installed("clients/collections/webcrypto.js"))
        .arg(installed("clients/collections/node_modules/.bin").join(program))
        .arg("run");
    command
}

fn newman<'a>(stage: &'a Stage, consumer: &'a Consumer, collection: &[u8]) -> Tool<'a> {
    fs::write(stage.path("collection.json"), collection).unwrap();
    Tool {
        stage,
        consumer,
        run: |tool_run, requests, variables| {
            let mut command = tool("newman");
            command
                .arg("collection.json")
                .current_dir(tool_run.stage.directory.path());
            command.args([
                "--reporters",
                "cli,json",
                "--reporter-json-export",
                "out.json",
            ]);
            for request in requests {
                command.args(["--folder", request]);
            }
            for (name, value) in variables {
                command.arg("--env-var").arg(format!("{name}={value}"));
            }
            command.output().unwrap()
        },
        body: |tool_run| {
            let out: Value = read_json(&tool_run.stage.path("out.json"));
            let stream = &out["run"]["executions"][0]["response"]["stream"]["data"];
            let bytes: Vec<u8> = serde_json::from_value(stream.clone()).unwrap();
            String::from_utf8(bytes).unwrap()
        },
        page: |_| None,
    }
}

fn bruno<'a>(stage: &'a Stage, consumer: &'a Consumer, archive: &[u8]) -> Tool<'a> {
    fs::write(stage.path("collection.zip"), archive).unwrap();
    // It compares the checksums.
    let mut unpack = Command::new("python3");
    unpack.current_dir(stage.directory.path());
    unpack.args(["-m", "zipfile", "-e", "collection.zip", "bruno"]);
    assert!(unpack.status().unwrap().success());
    Tool {
        stage,
        consumer,
        run: |tool_run, requests, variables| {
            let mut command = tool("bru");
            command
                .args(requests)
                .current_dir(tool_run.stage.path("bruno"));
            command.args(["--env", "service", "--reporter-json", "../out.json"]);
            for (name, value) in variables {
                command.arg("--env-var").arg(format!("{name}={value}"));
            }
            command.output().unwrap()
        },
        body: |tool_run| {
            let out: Value = read_json(&tool_run.stage.path("out.json"));
            let body = &out[0]["results"][0]["response"]["data"];
            body.as_str().unwrap_or_else(|| panic!("{out}")).to_owned()
        },
        page: |tool_run| {
            let address = tool_run
                .variables()
                .split("open_in_browser")
                .nth(1)?
                .to_owned();
            let begin = address.find("http")?;
            address[begin..]
                .split(['\n', '"'])
                .next()
                .map(str::to_owned)
        },
    }
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

const POSTMAN_NAMES: [&str; 3] = ["1 Request token", "2 Access token", "3 Signed call"];
const BRUNO_NAMES: [&str; 3] = [
    "1-request-token.yml",
    "2-access-token.yml",
    "3-signed-call.yml",
];

#[test]
fn newman_walks_the_flow_with_the_collection_of_the_page() {
    let stage = Stage::start("");
    let consumer = stage.consumer();
    let file = stage.downloaded(&consumer, "postman");
    assert_eq!(file.header("content-type"), Some("application/json"));
    let name = format!(
        "attachment; filename=\"{}.postman_collection.json\"",
        consumer.key
    );
    assert_eq!(file.header("content-disposition"), Some(&*name));
    assert!(!file.text().contains(&consumer.secret));
    newman(&stage, &consumer, &file.body).walks(POSTMAN_NAMES);
}

#[test]
fn bruno_walks_the_flow_with_the_collection_of_the_page() {
    let stage = Stage::start("");
    let consumer = stage.consumer();
    let file = stage.downloaded(&consumer, "bruno");
    assert_eq!(file.header("content-type"), Some("application/zip"));
    assert!(!latin1(&file.body).contains(&consumer.secret));
    let tool = bruno(&stage, &consumer, &file.body);
    tool.walks(BRUNO_NAMES);
    // It keeps no secret in its files either.
    assert!(!tool.variables().contains(&consumer.secret));
    assert!((tool.page)(&tool).is_some(), "{}", tool.variables());
}

#[test]
fn consumer_add_writes_collections_that_both_tools_run() {
    // Only a method that the tools do not prefer, and paths of another provider.
    let config = "signature.methods = ['HMAC-SHA512']
service.request_token_paths = ['/oauth/initiate']
service.authorize_paths = ['/oauth/decide']
";
    let mut stage = Stage::start(config);
    // The command does not know the port that the system gave.
    let base = format!("service.base_url = '{}'", stage.proxy.origin());
    stage.proxy.reconfigure(&base);
    let directory = stage.path("files");
    fs::create_dir(&directory).unwrap();
    // A path cannot be made of a key.
    let add = [
        "consumer",
        "add",
        "--name",
        "Photo {{printer}}",
        "--key",
        "../my:printer",
        "--callback",
        "oob",
        "--permission",
        "members.read",
        "--collections",
        directory.to_str().unwrap(),
        "--json",
    ];
    let added = stage.proxy.command(&add).done();
    let written = |name: &str| fs::read(directory.join(name)).unwrap();
    let consumer = Consumer::new("../my:printer", added.json()["secret"].as_str().unwrap());
    let [postman, archive] =
        ["myprinter.postman_collection.json", "myprinter.bruno.zip"].map(written);
    has(&added.stderr, &["wrote", "myprinter.bruno.zip"]);
    for file in [&postman, &archive] {
        assert!(!latin1(file).contains(&consumer.secret));
    }
    newman(&stage, &consumer, &postman).walks(POSTMAN_NAMES);
    bruno(&stage, &consumer, &archive).walks(BRUNO_NAMES);
    // A file that is there stays, and the secret is told all the same.
    let add = [
        "consumer",
        "add",
        "--name",
        "Second",
        "--key",
        "my-printer",
        "--json",
        "--collections",
        "/nowhere",
    ];
    let added = stage.proxy.command(&add).done();
    has(
        &added.stderr,
        &["warning: --collections: /nowhere/my-printer.bruno.zip"],
    );
    assert!(added.json()["secret"].is_string());
}

#[test]
fn an_owner_gets_the_collections_of_an_own_consumer_alone() {
    let stage = Stage::start("");
    let own = stage.consumer();
    let store = rusqlite::Connection::open(stage.proxy.directory().join("countersign.db")).unwrap();
    let owned = "UPDATE consumers SET owner = ?1, registration = 'unchecked' WHERE key = ?2";
    store.execute(owned, [&stage.user.id, &own.key]).unwrap();
    let page = format!("/service.oauth?mode=register&of={}", own.key);
    let mut visitor = Visitor::logged_in(&stage.proxy, &stage.user);
    has(
        &visitor.open(&page).answer.text(),
        &["collection=bruno", "collection=postman"],
    );
    let file = visitor.open(&format!("{page}&collection=postman")).answer;
    let collection: Value = serde_json::from_str(&file.has_status(200).text()).unwrap();
    assert_eq!(collection["variable"][0]["value"], Value::from(&*own.key));
    // No other tool: the page.
    let other = visitor.open(&format!("{page}&collection=..%2F")).answer;
    assert!(
        other
            .has_status(200)
            .header("content-disposition")
            .is_none()
    );
    let eve = stage.proxy.user("eve");
    let mut visitor = Visitor::logged_in(&stage.proxy, &eve);
    let refused = visitor.open(&format!("{page}&collection=postman")).answer;
    refused.has_status(404);
    let refused = stage
        .proxy
        .send(Call::get(&format!("{page}&collection=bruno")));
    assert!(
        refused.header("content-disposition").is_none(),
        "{refused:?}"
    );
}

#[test]
fn a_consumer_that_signs_by_rsa_alone_fills_in_its_private_key() {
    let stage = Stage::start("");
    let made = |arguments: &str| {
        let mut openssl = Command::new("openssl");
        openssl.current_dir(stage.directory.path());
        let ended = openssl.args(arguments.split(' ')).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    };
    made("genpkey -algorithm RSA -out key.pem");
    made("pkey -in key.pem -pubout -out public.pem");
    let public = stage.path("public.pem");
    let options = format!(
        "--callback oob --rsa-only --rsa-public-key {}",
        public.display()
    );
    let consumer = stage.proxy.consumer_with("Photo printer", &options);
    let key = fs::read_to_string(stage.path("key.pem")).unwrap();
    let [postman, archive] =
        ["postman", "bruno"].map(|tool| stage.downloaded(&consumer, tool).body);
    assert!(!latin1(&postman).contains("{{consumer_secret}}"));
    let variables = [("private_key", &*key)];
    newman(&stage, &consumer, &postman).runs(&POSTMAN_NAMES[..1], &variables);
    // The application keeps it encrypted; an option of the command line has no line breaks.
    let tool = bruno(&stage, &consumer, &archive);
    let empty = "\"private_key\",\n      \"secret\": true";
    let filled = format!("\"private_key\",\n      \"value\": {}", Value::from(key));
    let variables = tool.variables();
    assert!(variables.contains(empty), "{variables}");
    let path = stage.path("bruno/environments/service.yml");
    fs::write(path, variables.replace(empty, &filled)).unwrap();
    tool.runs(&BRUNO_NAMES[..1], &[]);
}

/// The variables of the collection for Postman.
fn postman_variables(stage: &Stage, consumer: &Consumer) -> Value {
    let file = stage.downloaded(consumer, "postman");
    let collection: Value = serde_json::from_str(&file.text()).unwrap();
    let variables = collection["variable"].as_array().unwrap().iter();
    variables
        .map(|one| {
            let name = one["key"].as_str().unwrap().to_owned();
            (name, one["value"].clone())
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn the_call_to_try_is_one_that_the_consumer_may_make() {
    let operations = "
[[permission]]
name = 'admin'

[[permission]]
name = 'members.read'

[[operation]]
path = '/users/me'
access = ['user']

[[operation]]
path = '/admin'
permission = 'admin'

[[operation]]
path = '/members/{id}'
methods = ['PUT']

[[operation]]
path = '/members/{id}'
methods = ['GET']
permission = 'members.read'
";
    let open = "
[[operation]]
path = '/status'
";
    for (more, permissions, expected) in [
        ("", "--permission admin", Some("/admin")),
        ("", "--permission members.read", Some("/members/1")),
        ("", "", None),
        (open, "", Some("/status")),
        (open, "--permission members.read", Some("/members/1")),
    ] {
        let stage = Stage::with(&format!("{operations}{more}"));
        let consumer = stage.proxy.consumer_with("Photo printer", permissions);
        let url = postman_variables(&stage, &consumer)["api_url"].clone();
        let expected = expected.map(|path| format!("{}{path}", stage.proxy.origin()));
        assert_eq!(
            url,
            Value::from(expected.unwrap_or_default()),
            "{permissions}"
        );
    }
    // Where no operation is listed, the root is one.
    let stage = Stage::with("");
    let url = postman_variables(&stage, &stage.proxy.consumer("Any"))["api_url"].clone();
    assert_eq!(url, Value::from(format!("{}/", stage.proxy.origin())));
}

#[test]
fn a_key_is_not_read_as_a_variable() {
    let stage = Stage::start("");
    for (key, expected) in [("x{{consumer_secret}}", ""), ("x{y}}", "x{y}}")] {
        let options = format!("--callback oob --key {key}");
        let consumer = stage.proxy.consumer_with("Photo printer", &options);
        let variables = postman_variables(&stage, &consumer);
        assert_eq!(variables["consumer_key"], Value::from(expected));
        assert_eq!(variables["callback"], "oob");
    }
}
