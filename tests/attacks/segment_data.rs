//! Paths with data in their segments: `%2F`, `%25`, `;parameters` and empty segments, in front of APIs that read them otherwise.

use crate::{
    attacks::apis::Api,
    support::{Call, Proxy, Scene, words},
};

const DATA: &str = "paths = { encoded = 'data', parameters = 'data', empty_segments = 'data' }\n";

const OPERATIONS: &str = "permission = [{ name = 'admin', title = 'Admin' }]
    operation = [
        { path = '/{*rest}', access = ['anonymous'] },
        { path = '/open/{*rest}', access = ['anonymous'] },
        { path = '/items/{id}', access = ['anonymous'] },
        { path = '/open/admin', permission = 'admin' },
        { path = '/admin', permission = 'admin' },
        { path = '/items/{id}/secret', permission = 'admin' }]";

/// Spellings of the paths of secrets.
fn hostile() -> Vec<String> {
    let begins = words(
        "/ // /%2F /;x/ /%5C /open/..%2F /open/..;x/ /open/%252e%252e/ /x%2F..%2F /open/%2e%2e;/ /%2e%2F /open/..%252f",
    );
    let joins = words("/ // %2F %2f %5C %252F ;x/ /;/ /.%2F ;%2F /x;/..%2F");
    let ends = words(
        "- ;x ;x=/ %3Bx %253Bx %25 %2500 %2F // %2500.png %253Fx=1 ;.json %3B.json /%2e%3b %252e",
    );
    let mut all = Vec::new();
    for begin in &begins {
        for join in &joins {
            for end in &ends {
                let end = end.trim_start_matches('-');
                for path in ["open|admin", "items|7|secret"] {
                    all.push(format!("{begin}{}{end}", path.replace('|', join)));
                }
            }
        }
    }
    let admins = begins.iter().flat_map(|begin| {
        let end = |end: &&str| format!("{begin}admin{}", end.trim_start_matches('-'));
        ends.iter().map(end).collect::<Vec<_>>()
    });
    all.extend(admins);
    all
}

/// Sends every spelling to an API by itself, which has to fall for some, and through countersign, where it may fall for none.
fn finds_no_secret(api: &Api) {
    let mut proxy = Proxy::in_front_of_url(&format!("http://{}", api.address))
        .config(&format!("{DATA}{OPERATIONS}"))
        .start();
    let (mut passed, mut fallen) = (0, 0);
    for (index, target) in hostile().into_iter().enumerate() {
        let call = Call::get(&target);
        let (status, text) = {
            let answer = proxy.send(call);
            (answer.status, answer.text())
        };
        assert!(!text.starts_with("secret"), "{target}: {status} {text}");
        passed += usize::from(!text.contains("oauth_problem"));
        let falls = || api.receives("GET", &target).map(|answer| answer.text());
        fallen += usize::from(index % 7 == 0 && falls().is_some_and(|it| it.starts_with("secret")));
    }
    assert!(passed > 20 && fallen > 0, "{passed} {fallen}");
    for (target, route) in [("/items/24", "item"), ("/open/x/y", "open")] {
        let answer = proxy.passes(Call::get(target));
        assert!(answer.text().starts_with(route), "{target}: {answer:?}");
    }
    proxy.stop();
}

#[test]
fn flask_finds_no_secret_behind_data_of_a_segment() {
    finds_no_secret(&Api::flask());
}

#[test]
fn express_finds_no_secret_behind_data_of_a_segment() {
    finds_no_secret(&Api::express());
}

#[test]
fn php_finds_no_secret_behind_data_of_a_segment() {
    finds_no_secret(&Api::php());
}

#[test]
fn nginx_finds_no_secret_behind_data_of_a_segment() {
    finds_no_secret(&Api::nginx());
}

#[test]
fn tomcat_finds_no_secret_behind_data_of_a_segment() {
    finds_no_secret(&Api::tomcat());
}

#[test]
fn rails_finds_no_secret_behind_data_of_a_segment() {
    finds_no_secret(&Api::rails());
}

const SHOP: &str = "permission = [{ name = 'write', title = 'Write' }]
    operation = [
        { path = '/products/{sku}' },
        { path = '/products/{sku}/media', permission = 'write' },
        { path = '/r/{*rest}' },
        { path = '/r/{id}/photos', permission = 'write' }]";

#[test]
fn data_of_a_segment_reaches_the_api_as_it_was_sent() {
    let paths = [
        (
            "encoded",
            "/products/24%2FMB01 /products/24%2fMB01 /products/50%25 /products/a%3Bb%5Cc /r/a%252Fb/c /r/%2F",
        ),
        (
            "parameters",
            "/r/items;jsessionid=AB12 /products/7;v=1;w /r/;x/y /r/a;b/c;d",
        ),
        (
            "empty_segments",
            "/r//items /products//media/x /r///x /r/x// /products//",
        ),
    ];
    for (key, permitted) in paths {
        let Scene { api, proxy, caller } = Scene::with(&format!(
            "paths.{key} = 'data'\n{}",
            SHOP.replace("'/r/{*rest}' }", "'/r/{*rest}' }, { path = '/products/{a}/{b}/{*rest}' }, { path = '/products/{sku}/' }")
        ));
        for path in words(permitted) {
            proxy.passes(Call::get(path).of(&caller));
            assert_eq!(api.last_request().target, path);
        }
        let before = api.count();
        for (other, rejected) in paths.iter().filter(|(other, _)| *other != key) {
            for path in words(rejected) {
                let answer = proxy.send(Call::get(path).of(&caller));
                assert_eq!(answer.status, 400, "{path} with {key}");
                assert!(!answer.text().contains("paths."), "{answer:?}");
            }
            proxy.logs(&[
                "400",
                &format!("cause=\"the setting paths.{other} rejects it\""),
            ]);
        }
        assert_eq!(api.count(), before);
    }
}

#[test]
fn dot_segments_stay_rejected_in_any_encoding() {
    let Scene { api, proxy, caller } = Scene::with(&format!("{DATA}{SHOP}"));
    for path in words(
        r"/r/.. /r/x/../y /r/%2e%2e/x /r/a/%2E./x /r/..%2Fx /r/x%2F..%2Fy /r/x%2f%2e%2e /r/..%5Cx /r/x%5c.. /r/%252e%252e/x
         /r/%25252e%25252e/x /r/..%252Fx /r/x%252F..%252Fy /r/..;x/y /r/..;/y /r/..%3Bx/y /r/..%253Bx/y /r/.;x/y /r/.%2Fx /r/%252e/x
         /r/x/..;x=y /products/..%2F7 /products/%2e%2e%2f7 /r/..%2500/x /r/..%253Fx /r/%25%32%65%25%32%65/x /r/;/../x
         /r//../x /r/%c0%ae%c0%ae%2Fx /r/.%2520./x",
    ) {
        let answer = proxy.send(Call::get(path).of(&caller));
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
    }
    api.saw_nothing();
}

#[test]
fn another_reading_of_a_path_is_not_permitted_more() {
    let Scene { api, proxy, caller } = Scene::with(&format!("{DATA}{SHOP}"));
    let read_as_others = words(
        r"/products/7%2Fmedia /products/7%2fmedia /products/7%5Cmedia /products/7%252Fmedia /r/7%2Fphotos /r/7/photos;x
         /r/7/photos%3Bx /r/7;x/photos;y /r//7/photos /r/7//photos //r/7/photos /r/7/;x/photos /r/7/photos%2500 /r/7/Photos;x
         /r/7/photos.json;x /r/7/photos%2F",
    );
    for path in read_as_others.iter().copied() {
        proxy.rejects(Call::get(path).of(&caller), 404, "permission_denied");
    }
    api.saw_nothing();
    for path in words("/products/7%2Fphotos /r/7%2Fmedia /r/7/photos2;x /r/a//photos/x") {
        proxy.passes(Call::get(path).of(&caller));
    }
    // The operator says that the API compares paths exactly.
    let wider = DATA.replace(" }", ", similar = 'wider' }") + SHOP;
    let Scene { api, proxy, caller } = Scene::with(&wider);
    for path in read_as_others.iter().copied() {
        if !path.starts_with("//") {
            proxy.passes(Call::get(path).of(&caller));
            assert_eq!(api.last_request().target, path);
        }
    }
}

#[test]
fn another_reading_of_a_path_keeps_its_enforcement() {
    for similar in ["reject", "wider"] {
        let Scene { api, proxy, .. } = Scene::with(&format!(
            "signature.enforcement = 'observe'
            paths = {{ encoded = 'data', parameters = 'data', empty_segments = 'data', similar = '{similar}' }}
            operation = [{{ path = '/r/{{*rest}}' }}, {{ path = '/r/{{id}}/photos', enforcement = 'enforce' }}]"
        ));
        for path in words(
            "/r/7/photos /r/7%2Fphotos /r/7/photos;x /r/7/photos%3Bx /r//7/photos /r/7//photos //r/7/photos /r/7/photos%2500",
        ) {
            let answer = proxy.send(Call::get(path));
            assert_eq!(answer.status, 401, "{similar} {path}");
        }
        api.saw_nothing();
        for path in words("/r/7%2Fx /r/7/x;y /r/7/x%25 /none;x //none") {
            proxy.passes(Call::get(path));
        }
        // What is not listed stays enforced too.
        let Scene { api, proxy, .. } = Scene::with(&format!(
            "{DATA}operation = [{{ path = '/r/{{id}}', enforcement = 'observe' }}, {{ path = '/{{a}}/{{b}}/c' }}]"
        ));
        for path in words("//r/7 /r//7 /r/7/c;x /r/7%2Fc /r/7%2Fc;x") {
            assert_eq!(proxy.send(Call::get(path)).status, 401, "{path}");
        }
        api.saw_nothing();
        proxy.passes(Call::get("/r/7%2Fx"));
    }
}

#[test]
fn patterns_have_data_of_segments_where_it_is_permitted() {
    let operations = "permission = [{ name = 'write', title = 'Write' }]
        operation = [
            { path = '//v1/{id}', permission = 'write' },
            { path = '/v1/{id}', permission = 'write' },
            { path = '/a%2Fb/{id}' },
            { path = '/v;1/x' }]";
    let Scene { api, proxy, caller } = Scene::with(&format!("{DATA}{operations}"));
    for path in words("/a%2Fb/7 /a%2fb/7 /v;1/x") {
        proxy.passes(Call::get(path).of(&caller));
        assert_eq!(api.last_request().target, path);
    }
    for path in words("//v1/7 /v1/7 /a%2FB/7 /a/b/7 /a%252Fb/7 /v%3B1/y /v;2/x") {
        proxy.rejects(Call::get(path).of(&caller), 404, "permission_denied");
    }
}
