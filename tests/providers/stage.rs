//! One provider: the program on its configuration in `deploy/providers`, an API that answers as the provider's SDKs expect,
//! and a user.

use std::path::{Path, PathBuf};

use crate::{
    providers::api,
    support::{Consumer, Proxy, Token, Upstream, User, authority::Authority},
};

pub(crate) struct Stage {
    pub(crate) api: Upstream,
    pub(crate) proxy: Proxy,
    pub(crate) user: User,
    /// The hosts of the configuration.
    pub(crate) hosts: Vec<String>,
    /// The certificate that the SDKs trust.
    pub(crate) ca: PathBuf,
}

/// The text of a provider's file.
pub(crate) fn file(provider: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("deploy/providers")
        .join(format!("{provider}.toml"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Stage {
    /// Starts the program on this text of a provider's file.
    pub(crate) fn on(text: &str, api: Upstream) -> Self {
        let table: toml::Table = text.parse().unwrap();
        let hosts = hosts(&table["service"]);
        let mut builder = Proxy::in_front_of(&api).config(text);
        // What the file says of the operator's own machine is the test's here.
        builder.set("upstream.api_url", api.url().into());
        let authority = Authority::new("CA of the test");
        let directory = builder.directory().to_owned();
        let ca = authority.write(&directory, "ca");
        if text.contains("base_url = \"https://") {
            let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
            let files = authority.server(&names).write(&directory, "server");
            builder = builder.over_tls(files, &authority.pem);
        }
        let proxy = builder.start();
        let user = proxy.user("alice");
        Self {
            api,
            proxy,
            user,
            hosts,
            ca,
        }
    }

    /// Starts the program on a provider's file, before an API of which every SDK finds what it looks for.
    pub(crate) fn of(provider: &str) -> Self {
        Self::on(&file(provider), Upstream::replying(api::answer))
    }

    /// The same with other host names in the file.
    pub(crate) fn renamed(provider: &str, from: &str, to: &str) -> Self {
        let text = file(provider).replace(from, to);
        Self::on(&text, Upstream::replying(api::answer))
    }

    /// Registers a consumer without a secret, as Launchpad and MAAS have them.
    pub(crate) fn consumer_without_secret(&self) -> (Consumer, Token) {
        let words = "consumer add --json --name Tool --key tool --secret - --accept empty_secret";
        let words: Vec<&str> = words.split(' ').collect();
        self.proxy.command_with(&words, "").done();
        let consumer = Consumer::new("tool", "");
        let token = self.proxy.token(&consumer, &self.user);
        (consumer, token)
    }

    /// Registers a consumer with these options, and issues a token for calls of SDKs that have no flow.
    pub(crate) fn consumer(&self, options: &str) -> (Consumer, Token) {
        let consumer = self.proxy.consumer_with("Shop", options);
        let token = self.proxy.token(&consumer, &self.user);
        (consumer, token)
    }
}

/// The hosts of all addresses in `service`.
fn hosts(service: &toml::Value) -> Vec<String> {
    let one = |key: &str| service.get(key).into_iter().cloned();
    let list = |key: &str| {
        let list = service.get(key).and_then(toml::Value::as_array).cloned();
        list.unwrap_or_default()
    };
    let addresses = one("base_url")
        .chain(list("public_api_urls"))
        .chain(list("page_urls"));
    let mut hosts: Vec<String> = addresses
        .map(|url| {
            let url = url::Url::parse(url.as_str().unwrap()).unwrap();
            url.host_str().unwrap().to_owned()
        })
        .collect();
    hosts.sort();
    hosts.dedup();
    hosts
}
