//! An application that keeps consumers and tokens, as `store.lookup.url` asks it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use super::{
    proxy::Builder,
    upstream::{Reply, Seen, Upstream},
};

/// The secret of `store.lookup.secret_file`.
const SECRET: &str = "secret-of-the-lookup";

/// What the application has.
#[derive(Default)]
struct Kept {
    /// By key or token.
    records: BTreeMap<String, Value>,
    /// The response to everything, instead of a record.
    reply: Option<Reply>,
}

/// A running application.
pub struct Application {
    http: Upstream,
    kept: Arc<Mutex<Kept>>,
}

impl Application {
    /// An application with these records, on a port of its own.
    pub fn with(records: impl IntoIterator<Item = Value>) -> Self {
        Self::over(records, |answer| Upstream::replying(answer))
    }

    /// An application with these records; `start` starts its listener.
    pub fn over(
        records: impl IntoIterator<Item = Value>,
        start: impl FnOnce(Box<dyn Fn(&Seen) -> Reply + Send + Sync>) -> Upstream,
    ) -> Self {
        let kept = Arc::<Mutex<Kept>>::default();
        let answers = Arc::clone(&kept);
        let http = start(Box::new(move |seen| answer(&answers.lock().unwrap(), seen)));
        let application = Self { http, kept };
        records
            .into_iter()
            .for_each(|record| application.put(record));
        application
    }

    /// Keeps a record, instead of one of the same name.
    pub fn put(&self, record: Value) {
        let name = record.get("token").unwrap_or(&record["key"]);
        self.put_as(name.as_str().unwrap(), record.clone());
    }

    /// Keeps a record under another name than its own.
    pub fn put_as(&self, name: &str, record: Value) {
        let records = &mut self.kept.lock().unwrap().records;
        records.insert(name.to_owned(), record);
    }

    /// Keeps it no longer.
    pub fn remove(&self, name: &str) {
        self.kept.lock().unwrap().records.remove(name);
    }

    /// Responds this way from now on, or with its records.
    pub fn replies(&self, reply: impl Into<Option<Reply>>) {
        self.kept.lock().unwrap().reply = reply.into();
    }

    /// The bodies of the requests so far, but for those that ask for a key that no consumer has.
    pub fn asked(&self) -> Vec<Value> {
        let requests = self.http.requests().into_iter();
        let bodies = requests.map(|seen| serde_json::from_slice(&seen.body).unwrap());
        bodies
            .filter(|body: &Value| body["consumer_key"] != "no-consumer-of-countersign")
            .collect()
    }

    /// How many requests there were for this key or token.
    pub fn asked_for(&self, name: &str) -> usize {
        let is_for = |body: &&Value| body.get("token").unwrap_or(&body["consumer_key"]) == name;
        self.asked().iter().filter(is_for).count()
    }

    /// The listener.
    pub fn http(&self) -> &Upstream {
        &self.http
    }

    /// Lets a proxy look records up here.
    pub fn looked_up_by(&self, builder: Builder) -> Builder {
        looked_up_at(&format!("{}/internal/oauth", self.http.url()), builder)
    }
}

/// Lets a proxy look records up at this URL.
pub fn looked_up_at(url: &str, builder: Builder) -> Builder {
    let path = builder.directory().join("lookup.secret");
    std::fs::write(&path, format!("{SECRET}\n")).unwrap();
    let (path, private) = (
        path.display(),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    );
    std::fs::set_permissions(path.to_string(), private).unwrap();
    builder.config(&format!(
        "store.lookup.url = '{url}'\nstore.lookup.secret_file = '{path}'"
    ))
}

fn answer(kept: &Kept, seen: &Seen) -> Reply {
    if let Some(reply) = &kept.reply {
        return reply.clone();
    }
    if seen.header("Authorization") != Some(&format!("Bearer {SECRET}")) {
        return Reply::status("401 Unauthorized");
    }
    assert_eq!((&*seen.method, &*seen.target), ("POST", "/internal/oauth"));
    assert_eq!(seen.header("Content-Type"), Some("application/json"));
    let asked: Value = serde_json::from_slice(&seen.body).unwrap();
    let name = asked.get("token").unwrap_or(&asked["consumer_key"]);
    match kept.records.get(name.as_str().unwrap()) {
        Some(record) => Reply::ok(record.to_string()).header("Content-Type", "application/json"),
        None => Reply::status("404 Not Found"),
    }
}

/// A consumer as an application has it.
pub fn consumer_record(key: &str, secret: &str) -> Value {
    json!({ "key": key, "secret": secret, "permissions": ["read"] })
}

/// An access token as an application has it.
pub fn token_record(token: &str, secret: &str, consumer: &str, user: &str) -> Value {
    json!({ "token": token, "token_secret": secret, "consumer": consumer, "user": user, "permissions": ["read"] })
}
