//! What was acknowledged survives: kill -9 at any moment, and a disk that takes no more.
//!
//! Each test is two processes: run without [`CHILD`] in its environment it starts itself anew with it, and as the child
//! it issues access tokens, one line each once it is acknowledged, until it is killed or fails.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use countersign::store::{
    Store, StoreError,
    port::{Added, TokenFilter},
    sqlite::{Params, SqliteStore},
};

use crate::records::{access_token, populate};

const CHILD: &str = "STORE_CONTRACT_CHILD";
/// Use cases under way at once, so that some share a transaction.
const AT_ONCE: usize = 8;
/// Tokens of each, if nothing ends the child before.
const MOST: usize = 5_000;

fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(
        SqliteStore::open(Params {
            path: path.to_owned(),
            keys: Vec::new(),
            accepts_clear: false,
        })
        .unwrap(),
    )
}

/// Starts `test` of this file as a child, through a shell that runs `limit` first.
fn start(test: &str, limit: &str, path: &Path, round: usize) -> Child {
    Command::new("sh")
        .args(["-c", &format!("{limit} exec \"$@\""), "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("sqlite_crash::{test}"), "--nocapture"])
        .env(CHILD, format!("{round}:{}", path.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What the child was told, if this process is one.
fn told() -> Option<(String, PathBuf)> {
    let told = std::env::var(CHILD).ok()?;
    let (round, path) = told.split_once(':').unwrap();
    Some((round.to_owned(), path.into()))
}

/// Issues tokens until something fails; says what.
async fn issue(store: Arc<dyn Store>, round: &str) -> StoreError {
    let issuers: Vec<_> = (0..AT_ONCE)
        .map(|issuer| {
            let (store, round) = (Arc::clone(&store), round.to_owned());
            tokio::spawn(async move {
                for number in 0..MOST {
                    let token = format!("{round}.{issuer}.{number}");
                    match store
                        .issue_access_token(access_token(&token, "c", "u"))
                        .await
                    {
                        Ok(added) => {
                            assert_eq!(added, Added::Added);
                            say(&format!("acknowledged {token}"));
                        }
                        Err(error) => {
                            say(&format!("failed {token}"));
                            return error;
                        }
                    }
                }
                panic!("nothing has ended this")
            })
        })
        .collect();
    let mut last = None;
    for issuer in issuers {
        last = Some(issuer.await.unwrap());
    }
    last.unwrap()
}

/// Writes one line at once.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

/// The tokens that the child has named with `word`; a line that was cut off by its end is none.
fn named(lines: &[String], word: &str) -> Vec<String> {
    lines
        .iter()
        .filter_map(|line| line.split_once(word))
        .map(|(_, token)| token.trim().to_owned())
        .collect()
}

fn read_lines(child: &mut Child, most: usize) -> Vec<String> {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut lines = Vec::new();
    let mut line = String::new();
    while out.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
        lines.push(std::mem::take(&mut line));
        if lines.len() == most {
            // It goes on writing into the pipe until it dies.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    lines
}

async fn kept(store: &Arc<dyn Store>) -> Vec<String> {
    let tokens = store
        .access_tokens(&TokenFilter::default(), None, u32::MAX)
        .await
        .unwrap();
    tokens.into_iter().map(|token| token.token).collect()
}

fn assert_sound(path: &Path) {
    let sql = rusqlite::Connection::open(path).unwrap();
    let verdict: String = sql
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_keeps_every_acknowledged_token() {
    if let Some((round, path)) = told() {
        panic!("{}", issue(open(&path), &round).await);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    populate(&open(&path)).await;
    let mut acknowledged = Vec::new();
    for round in 0..5 {
        let test = "a_killed_process_keeps_every_acknowledged_token";
        let mut child = start(test, "", &path, round);
        let lines = read_lines(&mut child, 20 + 150 * round);
        let tokens = named(&lines, "acknowledged ");
        assert!(tokens.len() > 10, "{lines:?}");
        acknowledged.extend(tokens);
        let store = open(&path);
        let kept = kept(&store).await;
        for token in &acknowledged {
            assert!(kept.contains(token), "round {round} lost {token}");
        }
        // Whatever else was caught half-way is there whole or not at all, and known to the caches.
        for token in kept {
            assert!(store.access_token(&token).await.unwrap().is_some());
        }
    }
    assert_sound(&path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_told_and_leaves_nothing_half_written() {
    if let Some((round, path)) = told() {
        let store = open(&path);
        let error = issue(Arc::clone(&store), &round).await;
        assert!(matches!(error, StoreError::Unavailable(_)));
        // What was there can still be read, and the store says again that it cannot write.
        assert!(
            store
                .consumer(&"c".parse().unwrap())
                .await
                .unwrap()
                .is_some()
        );
        let again = store
            .issue_access_token(access_token("failed again", "c", "u"))
            .await;
        assert!(matches!(again, Err(StoreError::Unavailable(_))));
        say("reads on");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    populate(&open(&path)).await;
    // No file may grow beyond 512 blocks of 512 or 1024 bytes, and no signal ends the process for trying.
    let test = "a_full_disk_is_told_and_leaves_nothing_half_written";
    let mut child = start(test, "trap '' XFSZ; ulimit -f 512;", &path, 0);
    let lines = read_lines(&mut child, usize::MAX);
    assert!(
        lines.iter().any(|line| line.contains("reads on")),
        "{lines:?}"
    );
    let acknowledged = named(&lines, "acknowledged ");
    assert!(acknowledged.len() > 10);
    let failed = named(&lines, "failed ");
    assert_eq!(failed.len(), AT_ONCE);

    assert_sound(&path);
    let store = open(&path);
    let kept = kept(&store).await;
    assert_eq!(kept.len(), acknowledged.len());
    assert!(acknowledged.iter().all(|token| kept.contains(token)));
    // With room again it goes on.
    let added = store
        .issue_access_token(access_token(&failed[0], "c", "u"))
        .await;
    assert_eq!(added.unwrap(), Added::Added);
}
