//! `rekey`.

use serde_json::json;

use crate::place::Place;
use crate::text::has;

const LIST: &[&str] = &["consumer", "list"];

fn place(keys: &str) -> Place {
    let place = Place::new();
    for (name, byte) in [("old.key", 1), ("new.key", 2)] {
        std::fs::write(place.path(name), [byte; 32]).unwrap();
    }
    use_keys(&place, keys);
    place
}

fn use_keys(place: &Place, keys: &str) {
    let chmod = |name: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(place.path(name), mode).unwrap();
    };
    ["old.key", "new.key"].iter().for_each(|name| chmod(name));
    place.configure(&format!("store.encryption_key_file = {keys}\nlisten.address = '127.0.0.1:0'\nadmin.listen = '127.0.0.1:0'"));
}

#[test]
fn rekey_encrypts_a_plain_store() {
    let place = Place::new();
    place.consumer("shop");
    let line = place.run("rekey").failed(2);
    has(&line, &["store.encryption_key_file: names no key"]);
    std::fs::write(place.path("new.key"), [2; 32]).unwrap();
    place.configure("store.encryption_key_file = 'new.key'");
    let line = place.run(LIST).failed(1);
    assert!(line.contains("are not encrypted"), "{line}");
    assert_eq!(place.json("rekey"), json!({ "rekeyed": 1, "unchanged": 0 }));
    assert_eq!(place.json_lines(LIST).len(), 1);
    place.configure("");
    let line = place.run(LIST).failed(1);
    assert!(line.contains("is encrypted; name its key"), "{line}");
}

#[test]
fn rekey_without_a_store_is_an_error() {
    let place = place("['new.key', 'old.key']");
    let line = place.run("rekey").failed(1);
    assert!(line.contains("no such file"), "{line}");
}
