//! The recipes of `docs/recipes.md`: logins that nginx has checked by another server, and logins by LDAP.
//!
//! Promise (Storage and operation): Users log in through oauth2-proxy or Authelia in front, and by LDAP, with the recipes of
//! the documents.

use std::{fs, net::TcpStream, process::Command};

use super::{file, gateways::configure};
use crate::support::{
    Call, PATIENCE, Proxy, Reply, Upstream, User, Visitor, free_port, legs::LOGIN, program::Server,
    tls::Certificate, within,
};

/// nginx with a file of `deploy/login`, where a stand-in names the user of a cookie as the real server does.
fn nginx_names_the_user(
    configuration: &str,
    server: &str,
    user_field: &'static str,
    sign_in: &str,
) {
    let api = Upstream::start();
    let names = Upstream::replying(move |seen| {
        let cookie = seen.header("Cookie").unwrap_or_default();
        match cookie.strip_prefix("login=") {
            Some(user) => Reply::ok("").header(user_field, user),
            None => Reply::status("401 Unauthorized"),
        }
    });
    let builder = Proxy::in_front_of(&api).config(&format!(
        "listen.trusted_proxies = ['127.0.0.1']\nlogin.backend = 'header'\nlogin.user_header = '{user_field}'
        [service]\nbase_url = 'https://auth.example.com'\npublic_api_urls = ['https://api.example.com']"
    ));
    let certificate = Certificate::for_names(&["api.example.com", "auth.example.com"]);
    let (chain, _) = certificate.write(builder.directory());
    let directory = builder.directory().to_owned();
    let (proxy, port) = (builder.start(), free_port());
    let replaced = [
        ("127.0.0.1:8080", &*proxy.address().to_string()),
        (server, names.url().trim_start_matches("http://")),
    ];
    configure("deploy/login", &directory, port, &replaced);
    let mut nginx = Command::new("/usr/sbin/nginx");
    nginx
        .arg("-p")
        .arg(&directory)
        .arg("-e")
        .arg(directory.join("log"));
    nginx.args(["-g", "daemon off;", "-c", configuration]);
    let _nginx = Server::start(nginx.current_dir(&directory));
    within(PATIENCE, "nginx", || {
        TcpStream::connect(("127.0.0.1", port)).ok()
    });

    let curl = |arguments: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args([
            "-sS",
            "-w",
            "\n%{http_code} %{redirect_url}",
            "--connect-to",
        ]);
        curl.arg(format!("::127.0.0.1:{port}"))
            .arg("--cacert")
            .arg(&chain);
        let output = curl.args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let pages = "https://auth.example.com/service.oauth?mode=applications";
    let forged = format!("{user_field}: mallory");
    for arguments in [&[pages][..], &[pages, "-H", &forged]] {
        let answer = curl(arguments);
        assert!(
            answer.contains("302 ") && answer.contains(sign_in),
            "{answer}"
        );
    }
    let answer = curl(&[pages, "-H", &forged, "-H", "Cookie: login=ada"]);
    assert!(
        answer.ends_with("\n200 ") && answer.contains("ada") && !answer.contains("mallory"),
        "{answer}"
    );

    // A consumer needs no login, neither for its tokens nor for its calls.
    let consumer = proxy.consumer("Printer");
    let user = proxy.user("grace");
    let token = proxy.token(&consumer, &user);
    for url in [
        "https://auth.example.com/oauth/request_token",
        "https://auth.example.com/service.oauth?mode=req_req_token",
    ] {
        let signed = [
            "sign",
            "POST",
            url,
            "--consumer-key",
            &consumer.key,
            "--callback",
            "oob",
        ];
        let header = proxy.command(&signed).done().stdout;
        let answer = curl(&["-X", "POST", "-H", header.trim(), "-H", &forged, url]);
        assert!(answer.starts_with("oauth_token="), "{answer}");
    }
    let url = "https://api.example.com/photos";
    let signed = [
        "sign",
        "GET",
        url,
        "--consumer-key",
        &consumer.key,
        "--token",
        &token.token,
    ];
    let header = proxy.command(&signed).done().stdout;
    let answer = curl(&["-H", header.trim(), "-H", &forged, url]);
    assert!(answer.ends_with("\n200 "), "{answer}");
    let seen = api.only_request();
    assert_eq!(seen.header("X-Auth-User"), Some(&*user.id));
    assert_eq!(seen.header(user_field), None);
}

#[test]
fn nginx_asks_oauth2_proxy_for_the_user_and_lets_consumers_pass() {
    let start = "https://auth.example.com/oauth2/start?rd=https://auth.example.com/service.oauth?mode=applications";
    nginx_names_the_user(
        "nginx-oauth2-proxy.conf",
        "127.0.0.1:4180",
        "X-Auth-Request-User",
        start,
    );
}

#[test]
fn nginx_asks_authelia_for_the_user_and_lets_consumers_pass() {
    let start =
        "https://login.example.com/?rd=https://auth.example.com/service.oauth?mode=applications";
    nginx_names_the_user(
        "nginx-authelia.conf",
        "127.0.0.1:9091",
        "Remote-User",
        start,
    );
}

#[test]
fn ldap_bridge_logs_in_by_a_bind_and_never_without_a_password() {
    let directory = tempfile::TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("db")).unwrap();
    let configuration = format!(
        "include /etc/ldap/schema/core.schema\ninclude /etc/ldap/schema/cosine.schema\n\
         include /etc/ldap/schema/inetorgperson.schema\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\n\
         allow bind_anon_cred bind_anon_dn\ndatabase mdb\nsuffix \"dc=example,dc=com\"\ndirectory {}\n\
         access to attrs=userPassword by anonymous auth\naccess to * by * none\n",
        at("db").display()
    );
    fs::write(at("slapd.conf"), configuration).unwrap();
    let entries = "dn: dc=example,dc=com\nobjectClass: domain\ndc: example\n\n\
        dn: ou=people,dc=example,dc=com\nobjectClass: organizationalUnit\nou: people\n\n\
        dn: uid=ada,ou=people,dc=example,dc=com\nobjectClass: inetOrgPerson\nuid: ada\ncn: Ada\nsn: Lovelace\n\
        userPassword: enchantress of numbers\n";
    fs::write(at("entries.ldif"), entries).unwrap();
    super::printed(
        Command::new("/usr/sbin/slapadd")
            .arg("-f")
            .arg(at("slapd.conf"))
            .arg("-l")
            .arg(at("entries.ldif")),
    );
    let (ldap, bridge) = (format!("ldap://127.0.0.1:{}", free_port()), free_port());
    let mut slapd = Command::new("/usr/sbin/slapd");
    slapd
        .args(["-d", "0", "-h", &ldap, "-f"])
        .arg(at("slapd.conf"));
    let slapd = Server::start(&mut slapd);
    let mut program = Command::new(file("deploy/login/ldap-bridge"));
    program
        .env("LDAP_URL", &ldap)
        .env("LDAP_DN", "uid={},ou=people,dc=example,dc=com");
    let _bridge = Server::start(
        program
            .arg(bridge.to_string())
            .stderr(fs::File::create(at("log")).unwrap()),
    );
    for port in [ldap.rsplit(':').next().unwrap(), &bridge.to_string()] {
        within(PATIENCE, port, || {
            TcpStream::connect(format!("127.0.0.1:{port}")).ok()
        });
    }

    let api = Upstream::start();
    let config = format!("login.backend = 'http'\nlogin.url = 'http://127.0.0.1:{bridge}/'");
    let proxy = Proxy::with(&api, &config);
    let log_in = |name: &str, password: &str| {
        let mut visitor = Visitor::to(&proxy);
        let page = visitor.open(LOGIN);
        visitor.log_in(&page, &User::new(name, password)).answer
    };
    let right = log_in("ada", "enchantress of numbers");
    assert!(!right.text().contains("type=\"password\""), "{right:?}");
    let wrong = ["", "wrong", "enchantress of numbers\n"].map(|password| ("ada", password));
    // The escaped names are names of no entry, and no other part of the directory.
    let others =
        ["ada,ou=people", "*", "ada)(uid=*", "eve"].map(|name| (name, "enchantress of numbers"));
    for (name, password) in wrong.into_iter().chain(others) {
        let answer = log_in(name, password);
        assert!(
            answer.text().contains("type=\"password\""),
            "{name} {password}: {answer:?}"
        );
    }
    drop(slapd);
    assert_eq!(log_in("ada", "enchantress of numbers").status, 503);
    // Only the first login had a session.
    let mut visitor = Visitor::to(&proxy);
    visitor.send(Call::get("/account")).has_status(401);
    assert_eq!(proxy.logged(&["login_succeeded"]), 1);
}
