//! A flood of logins: hashing passwords is expensive, and other callers must not be slowed.

use std::{net::TcpStream, time::Instant};

use crate::{
    faults::{load::Target, process::Process},
    support::{
        Answer, Call, Connection, Proxy, Upstream, Visitor, call::form, http::try_open,
        upstream::After,
    },
};

const LOGINS: usize = 200;

/// Two hashes at a time need 38 MiB, and the rest is for 200 connections; 200 hashes would need 3,800.
const MAY_ADD: usize = 72 << 20;

#[test]
fn of_200_logins_at_once_most_get_503_and_signed_calls_go_on() {
    let api = Upstream::handling(|exchange| {
        exchange.whole_body()?;
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        Ok(After::Keep)
    });
    let proxy = Proxy::with(
        &api,
        "listen.trusted_proxies = ['127.0.0.1']\nlogin.max_failures = '1000 per 15m'\nlimits.page_form_timeout = '1m'",
    );
    let caller = proxy.somebody();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    proxy.send(Call::get("/x").of(&caller)).has_status(200);

    // One page is enough for all: its form is bound to the browser, and so is each login that is sent.
    let mut visitor = Visitor::to(&proxy);
    let page = visitor.open("/service.oauth?mode=login");
    let cookies: Vec<String> = visitor
        .cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let login = |number: usize| {
        // Enough addresses to take all places: each has four.
        let address = format!("203.0.113.{}", number % 10);
        let filled = page
            .form_with("password")
            .set("username", &format!("somebody-{number}"))
            .set("password", "a guess");
        let call = Call::post("/service.oauth?mode=login")
            .header("Origin", &proxy.origin())
            .header("Sec-Fetch-Site", "same-origin")
            .header("Cookie", &cookies.join("; "))
            .header("X-Forwarded-For", &address)
            .header("Accept", "text/html");
        proxy.wire(&call.form(&form(&filled.fields)))
    };
    let process = Process::of(&proxy);
    let before = process.memory();
    process.forget_peak();
    let mut flood: Vec<(TcpStream, Vec<u8>)> = (0..LOGINS)
        .map(|number| {
            let wire = login(number);
            (try_open(target.address).unwrap(), wire)
        })
        .collect();
    // First all are sent except for a byte, and then all are completed at once.
    for (stream, wire) in &mut flood {
        std::io::Write::write_all(stream, &wire[..wire.len() - 1]).unwrap();
    }
    for (stream, wire) in &mut flood {
        std::io::Write::write_all(stream, &wire[wire.len() - 1..]).unwrap();
    }
    let begun = Instant::now();
    let mut kept = proxy.connect();
    let mut slowest = std::time::Duration::ZERO;
    for _ in 0..100 {
        let asked = Instant::now();
        proxy
            .send_on(&mut kept, Call::get("/x").of(&caller))
            .has_status(200);
        slowest = slowest.max(asked.elapsed());
    }
    let calls = begun.elapsed();
    let answers: Vec<Answer> = flood
        .into_iter()
        .map(|(stream, _)| Connection::over(stream).answer("POST"))
        .collect();
    let logins = begun.elapsed();
    let turned_away: Vec<&Answer> = answers
        .iter()
        .filter(|answer| answer.status == 503)
        .collect();
    eprintln!(
        "{LOGINS} logins at once: {} turned away, all answered within {logins:?}; 100 protected calls meanwhile in {calls:?}, the slowest {slowest:?}",
        turned_away.len()
    );
    for answer in &turned_away {
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!(seconds > 0);
    }
    // The queue is short; even on a fast machine it is not 200 long.
    assert!(!turned_away.is_empty(), "the queue has a bound");
    let checked = answers.len() - turned_away.len();
    assert!(checked >= 16, "{checked} were checked");
    for answer in &answers {
        assert!([200, 401, 403, 503].contains(&answer.status), "{answer:?}");
        assert!(
            answer.fields.get("location").is_none(),
            "no guess got in: {answer:?}"
        );
    }
    let added = process.peak_memory().saturating_sub(before);
    eprintln!("{} KiB more at most", added / 1024);
    assert!(added < MAY_ADD, "{added} bytes");

    // A refused login does not count as failed, and the right password logs in.
    let page = visitor.open("/service.oauth?mode=login");
    let after = visitor.log_in(&page, &caller.user);
    assert!(after.answer.status < 400, "{after:?}");
}

#[test]
fn guesses_over_the_limit_cost_no_hashing() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "login.max_failures = '3 per 15m'");
    let user = proxy.user("alice");
    let mut visitor = Visitor::to(&proxy);
    let mut statuses = Vec::new();
    let process = Process::of(&proxy);
    let mut wrong = user.clone();
    wrong.password = "a guess".to_owned();
    let mut ticks = process.ticks();
    for guess in 0..40 {
        if guess == 4 {
            ticks = process.ticks();
        }
        let page = visitor.open("/service.oauth?mode=login");
        let answer = visitor.log_in(&page, &wrong).answer;
        if answer.status == 429 {
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
        }
        statuses.push(answer.status);
    }
    let throttled = statuses.iter().filter(|&&status| status == 429).count();
    assert_eq!(throttled, 37, "{statuses:?}");
    // 36 hashes would be 100 ticks and more.
    let ticks = process.ticks() - ticks;
    eprintln!("36 throttled logins: {ticks} ticks of 10 ms");
}
