//! The memory that a consumer with a token takes in the cache.

use std::process::Command;

use super::*;
use crate::oauth::{SignatureMethod, sign_text};

const PAIRS: u64 = 40_000;
/// Pairs after which memory is counted: by then the 3 MB that do not grow with the cache are allocated.
const FIRST: u64 = 10_000;
/// Set in the process that fills a cache.
const FILLS: &str = "COUNTERSIGN_TEST_FILLS_CACHE";

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Fills a cache and prints the bytes of memory that a pair takes.
async fn fill() {
    let setup = setup_with(&CacheSettings {
        max_entries: PAIRS,
        ..settings()
    });
    let name = |what: &str, number: u64| format!("{what}{number:07}{}", "x".repeat(19));
    let (mut consumers, mut tokens) = (Vec::new(), Vec::new());
    for number in 0..PAIRS {
        let mut consumer = Consumer::for_tests(&name("consumer", number));
        consumer.secret = Secret::from(name("secret", number));
        consumer.permissions = vec!["members.read".parse().unwrap()];
        let mut token = token(&name("token", number), consumer.key.as_str());
        token.secret = Secret::from(name("secret", number));
        token.permissions.clone_from(&consumer.permissions);
        tokens.push(token);
        consumers.push(consumer);
    }
    setup.store.put_all(&consumers, &tokens);
    drop((consumers, tokens));
    let mut before = 0;
    for number in 0..PAIRS {
        if number == FIRST {
            before = resident();
        }
        let found = setup.cached.access(name("token", number).as_bytes()).await;
        let found = found.unwrap().unwrap();
        let (_, key) = found.keys(START).next().unwrap();
        assert!(sign_text(SignatureMethod::HmacSha1, key, b"text").is_some());
        // As a request does with them.
        assert!(found.field_values().unwrap().permissions.clone() == "members.read");
    }
    println!("bytes {}", (resident() - before) / (PAIRS - FIRST));
    let (consumers, tokens) = setup.reads();
    assert_eq!((consumers as u64, tokens as u64), (PAIRS, PAIRS));
}

#[test]
fn a_consumer_with_a_token_takes_at_most_1200_bytes() {
    if std::env::var_os(FILLS).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        return runtime.unwrap().block_on(fill());
    }
    // In a process of its own, where no other test takes memory.
    let name = std::thread::current().name().unwrap().to_owned();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env(FILLS, "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let bytes = text.lines().find_map(|line| line.strip_prefix("bytes "));
    let bytes: u64 = bytes.expect(&text).parse().unwrap();
    println!("{bytes} bytes for each pair");
    assert!(output.status.success() && bytes <= 1_200, "{bytes}: {text}");
}
