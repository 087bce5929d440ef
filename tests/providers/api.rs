//! The API of every provider at once: JSON in which each SDK finds the members that it reads.

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::support::{Reply, now, signer::header_pairs, upstream::Seen};

/// The key and the secret of the consumer of the wiki, with which `Special:OAuth/identify` signs.
pub(crate) const WIKI_KEY: &str = "wiki-consumer";
pub(crate) const WIKI_SECRET: &str = "secret-of-the-wiki-consumer-32-bytes";

pub(crate) fn answer(seen: &Seen) -> Reply {
    let json =
        |value: Value| Reply::ok(value.to_string()).header("Content-Type", "application/json");
    match seen.target.split('?').next().unwrap_or_default() {
        "/w/index.php" => Reply::ok(identity(seen)),
        "/wp-json" | "/wp-json/" => json(wordpress()),
        "/MAAS/api/2.0/describe/" => json(maas()),
        "/2/users/by" => {
            json(json!({ "data": [{ "id": "1", "name": "alice", "username": "alice" }] }))
        }
        "/rest/api/2/issue/X-1/attachments" => {
            json(json!([{ "id": "1", "filename": "a.txt", "size": 4 }]))
        }
        // edfi-schoology-extractor tries again after anything else.
        "/v1/sections" => Reply::status("201 Created").body("{}"),
        _ => json(anything()),
    }
}

fn anything() -> Value {
    let blog = json!({ "name": "blog", "title": "Blog", "primary": true, "uuid": "t:1" });
    let user = json!({
        "id": "1", "name": "alice", "display_name": "alice", "username": { "_content": "alice" }, "blogs": [blog],
    });
    json!({
        // Twitter
        "id": 1, "id_str": "1", "name": "alice", "screen_name": "alice", "media_id": 1, "media_id_string": "1",
        "statuses": [], "search_metadata": {}, "data": { "id": "1", "text": "x" },
        // Flickr and OpenStreetMap
        "stat": "ok", "user": user, "person": { "nsid": "1" }, "photos": {},
        // Tumblr
        "meta": { "status": 200 }, "response": { "user": user },
        // Discogs
        "username": "alice", "resource_url": "https://api.discogs.com/users/alice", "profile": "", "results": [],
        "pagination": { "items": 0, "page": 1, "pages": 1, "per_page": 50, "urls": {} },
        // Trello
        "fullName": "alice", "email": "alice@example.com",
        // Jira
        "issues": [], "total": 0, "startAt": 0, "maxResults": 50, "key": "X-1",
    })
}

/// What MediaWiki says of the caller: a JWT with the nonce of the request, signed with the consumer's secret.
fn identity(seen: &Seen) -> String {
    let credentials = header_pairs(seen.header("authorization").expect("the credentials go on"));
    let nonce = credentials
        .into_iter()
        .find(|(name, _)| name == b"oauth_nonce");
    let claims = json!({
        "iss": "https://wiki.example.org", "aud": WIKI_KEY, "iat": now(), "exp": now() + 60, "sub": "17", "username": "Alice",
        "nonce": String::from_utf8(nonce.expect("a nonce").1).unwrap(),
    });
    let key = EncodingKey::from_secret(WIKI_SECRET.as_bytes()).unwrap();
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key).unwrap()
}

fn wordpress() -> Value {
    let path = |name: &str| format!("https://blog.example.com/oauth1/{name}");
    json!({ "authentication": { "oauth1": { "request": path("request"), "authorize": path("authorize"), "access": path("access") } } })
}

fn maas() -> Value {
    let action = |name: &str, method: &str, op: Value| json!({ "name": name, "method": method, "op": op, "doc": "", "restful": op.is_null() });
    let machines = json!({
        "name": "MachinesHandler", "doc": "", "params": [], "path": "/MAAS/api/2.0/machines/",
        "uri": "https://maas.example.com/MAAS/api/2.0/machines/",
        "actions": [action("read", "GET", Value::Null), action("allocate", "POST", "allocate".into())],
    });
    json!({ "doc": "", "hash": "1", "resources": [{ "name": "MachinesHandler", "anon": null, "auth": machines }] })
}
