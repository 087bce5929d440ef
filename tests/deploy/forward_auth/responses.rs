//! What countersign adds to responses, and what it takes from requests.

use super::*;

/// The announced end of OAuth 1.0a reaches the caller, as far as the server can add it to a response of the API.
pub(super) fn announces_the_end(gateway: &Gateway) {
    let name = gateway.name;
    let [deprecation, sunset, link] = [
        "@1767225600",
        "Mon, 31 Mar 2031 00:00:00 GMT",
        "<https://example.com/oauth2>; rel=\"sunset\"",
    ];
    let wire = Call::get("/end").of(&gateway.caller).wire(ORIGIN, HOST);
    for status in [200, 401] {
        let answer = gateway.send(&wire).unwrap();
        assert_eq!(answer.status, status, "{answer:?}\n{}", gateway.log());
        let all = |field: &str| answer.fields.all(field);
        if name == "traefik" && status == 200 {
            assert!(!answer.fields.has("deprecation"), "{answer:?}");
            continue;
        }
        assert_eq!(all("deprecation"), [deprecation], "{name}: {answer:?}");
        assert!(all("link").contains(&link), "{name}: {answer:?}");
        let is_next = |link: &&&str| link.contains("rel=\"next\"");
        let next = all("link").iter().filter(is_next).count();
        assert_eq!(next, usize::from(status == 200), "{name}: {answer:?}");
        // Envoy and Apache add to the API's own field.
        if status == 200 && ["envoy", "apache"].contains(&name) {
            assert!(all("sunset").contains(&sunset), "{name}: {answer:?}");
        } else {
            assert_eq!(all("sunset"), [sunset], "{name}: {answer:?}");
        }
    }
    let unproved = gateway.refuses(&Call::get("/end").of(&gateway.caller).key("wrong"), 401);
    assert!(!unproved.fields.has("deprecation"), "{name}: {unproved:?}");
}

/// Sends each name of `upstream.drop_headers`, in two spellings.
pub(super) fn drops_what_an_api_would_believe(gateway: &Gateway) {
    let example: toml::Table = fs::read_to_string(file("config.example.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let patterns = example["upstream"]["drop_headers"].as_array().unwrap();
    let names = patterns.iter().flat_map(|pattern| match pattern.as_str().unwrap() {
        "X-Forwarded*" => words("X-Forwarded-User X-Forwarded-Email X-Forwarded-Groups X-Forwarded-Prefix X-Forwarded-Scheme X-Forwarded-Uri X-Forwarded-Method"),
        pattern => vec![pattern],
    });
    let names: Vec<String> = names
        .map(|name| name.replace('*', "Any"))
        .flat_map(|name| {
            let folded = name.to_uppercase().replace('-', "_");
            [name, folded]
        })
        .collect();
    assert!(names.len() > 150);
    for names in names.chunks(30) {
        let call = names
            .iter()
            .fold(Call::get("/dropped").of(&gateway.caller), |call, name| {
                call.header(name, "forged-value")
            });
        let answer = gateway.call(&call);
        assert_eq!(answer.status, 200, "{answer:?}\n{}", gateway.log());
        let seen = gateway.api.last_request();
        assert_eq!(seen.target, "/dropped");
        let kept: Vec<_> = seen
            .fields
            .0
            .iter()
            .filter(|(_, value)| value.contains("forged-value"))
            .collect();
        assert!(kept.is_empty(), "{}: {kept:?}", gateway.name);
    }
}
