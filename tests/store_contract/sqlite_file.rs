//! Tests of SQLite alone: a file, which may be another program's, locked, or of another time.
//!
//! Promise (Storage and operation): With a key, also after `rekey`, the store has no unencrypted secret. Also in
//! `src/records/values/seal.rs`, `tests/commands/rekey.rs`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use countersign::records::{
    store::{Backend, Store, StoreParams, open_store},
    values::{
        OpenProblem, Opening, StoreError, StoreOpenError,
        seal::SealKey,
        transfer::{Import, Record},
        use_cases::{Added, ResealFrom, TokenFilter},
    },
};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::store_contract::records::{
    NOW, access_token, allow, authorize, consumer, exported, id, import_list, issue, populate,
    rich_consumer, user,
};

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    (directory, path)
}

fn key(byte: u8) -> Option<SealKey> {
    Some(SealKey::new([byte; 32]))
}

fn open(path: &Path, key: Option<SealKey>) -> Result<Arc<Store>, StoreOpenError> {
    open_store(StoreParams {
        backend: Backend::Sqlite(path.to_owned()),
        keys: key.into_iter().collect(),
        opening: Opening::Serve,
        external: None,
    })
}

/// Encrypts a file, as `rekey` does.
async fn seal(path: &Path) {
    let params = StoreParams {
        backend: Backend::Sqlite(path.to_owned()),
        keys: key(1).into_iter().collect(),
        opening: Opening::Reseal,
        external: None,
    };
    let store = open_store(params).unwrap();
    let mut next = Some(ResealFrom::default());
    while let Some(from) = next {
        next = store.reseal(from, false).await.unwrap().next;
    }
}

async fn has_consumer(store: &Arc<Store>, key: &str) -> bool {
    store.consumer(&id(key)).await.unwrap().is_some()
}

fn execute(path: &Path, statements: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(statements).unwrap();
}

fn refusal(path: &Path, key: Option<SealKey>) -> OpenProblem {
    let Err(error) = open(path, key) else {
        panic!("{} was opened", path.display())
    };
    // One line that names the file.
    let line = error.to_string();
    assert!(line.starts_with(path.to_str().unwrap()), "{line}");
    assert!(!line.contains('\n'), "{line}");
    error.problem
}

/// Names and modes of the files beside the store.
fn files(directory: &TempDir) -> Vec<(String, u32)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
            (entry.file_name().into_string().unwrap(), mode)
        })
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    let (directory, path) = place();
    let store = open(&path, None).unwrap();
    populate(&store).await;
    let expected =
        ["store.db", "store.db-shm", "store.db-wal"].map(|name| (name.to_owned(), 0o600));
    assert_eq!(files(&directory), expected);
    // Closing leaves one file, which can be copied as it is.
    drop(store);
    assert_eq!(files(&directory), [("store.db".to_owned(), 0o600)]);
    let store = open(&path, None).unwrap();
    store.ping().await.unwrap();
    assert!(files(&directory).iter().all(|(_, mode)| *mode == 0o600));
}

/// The last connection to close empties the log; two that close at the same time must not leave it to each other.
#[tokio::test]
async fn closing_leaves_one_file_every_time() {
    let (directory, path) = place();
    for round in 0..200 {
        drop(open(&path, None).unwrap());
        assert_eq!(files(&directory).len(), 1, "round {round}");
    }
}

#[tokio::test]
async fn takes_an_empty_file_for_a_new_store() {
    let (_directory, path) = place();
    fs::write(&path, "").unwrap();
    populate(&open(&path, None).unwrap()).await;
}

#[test]
fn leaves_what_is_no_database_as_it_is() {
    let (directory, path) = place();
    let long = "notes\n".repeat(1000);
    for content in [
        "# notes\n",
        "SQLite format 2\0 and more",
        "S",
        &long,
        &long[..512],
    ] {
        fs::write(&path, content).unwrap();
        assert!(matches!(refusal(&path, None), OpenProblem::NotADatabase));
        assert!(matches!(refusal(&path, key(1)), OpenProblem::NotADatabase));
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        assert_eq!(files(&directory).len(), 1);
    }
    // The head alone does not make a database.
    let content = [b"SQLite format 3\0".as_slice(), &[7; 4080]].concat();
    fs::write(&path, &content).unwrap();
    assert!(matches!(refusal(&path, None), OpenProblem::NotADatabase));
    assert_eq!(fs::read(&path).unwrap(), content);
}

#[test]
fn leaves_the_database_of_another_program_as_it_is() {
    for statement in [
        "CREATE TABLE users (id TEXT)",
        "PRAGMA application_id = 77",
        "PRAGMA user_version = 1",
    ] {
        let (directory, path) = place();
        execute(&path, statement);
        let content = fs::read(&path).unwrap();
        assert!(
            matches!(refusal(&path, None), OpenProblem::OfAnotherProgram),
            "{statement}"
        );
        assert_eq!(fs::read(&path).unwrap(), content);
        assert_eq!(files(&directory).len(), 1);
    }
}

#[tokio::test]
async fn leaves_the_store_of_an_unreleased_build_as_it_is() {
    let (directory, path) = place();
    populate(&open(&path, None).unwrap()).await;
    execute(
        &path,
        "PRAGMA application_id = 0x4374536f; ALTER TABLE high_water_marks RENAME TO marks",
    );
    let content = fs::read(&path).unwrap();
    for key in [None, key(1)] {
        let error = refusal(&path, key);
        assert!(matches!(error, OpenProblem::Unreleased), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), content);
    assert_eq!(files(&directory).len(), 1);
}

#[tokio::test]
async fn leaves_a_newer_schema_as_it_is() {
    let (directory, path) = place();
    populate(&open(&path, None).unwrap()).await;
    execute(
        &path,
        "PRAGMA user_version = 9999; ALTER TABLE users ADD COLUMN future TEXT",
    );
    let content = fs::read(&path).unwrap();
    for key in [None, key(1)] {
        let error = refusal(&path, key);
        assert!(
            matches!(error, OpenProblem::NewerSchema { found: 9999, .. }),
            "{error}"
        );
    }
    assert_eq!(fs::read(&path).unwrap(), content);
    assert_eq!(files(&directory).len(), 1);
}

#[tokio::test]
async fn leaves_the_log_of_what_it_refuses_as_it_is() {
    // The files of a program that was killed: a database and a log that is not yet in it.
    let (_live, live) = place();
    populate(&open(&live, None).unwrap()).await;
    let newer = Connection::open(&live).unwrap();
    newer.execute_batch("PRAGMA user_version = 9999").unwrap();
    let (_directory, path) = place();
    let log = |path: &Path| path.with_extension("db-wal");
    fs::copy(&live, &path).unwrap();
    fs::copy(log(&live), log(&path)).unwrap();
    let before = [fs::read(&path).unwrap(), fs::read(log(&path)).unwrap()];
    assert!(!before[1].is_empty());
    assert!(matches!(
        refusal(&path, None),
        OpenProblem::NewerSchema { found: 9999, .. }
    ));
    assert_eq!(
        [fs::read(&path).unwrap(), fs::read(log(&path)).unwrap()],
        before
    );
}

#[test]
fn names_what_is_wrong_with_the_place() {
    let (directory, path) = place();
    assert!(matches!(
        refusal(directory.path(), None),
        OpenProblem::NotAFile
    ));
    let below = directory.path().join("missing/store.db");
    assert!(matches!(
        refusal(&below, None),
        OpenProblem::DirectoryMissing
    ));
    fs::write(&path, "").unwrap();
    let below = path.join("store.db");
    assert!(matches!(
        refusal(&below, None),
        OpenProblem::DirectoryMissing
    ));
    // A directory in which not even root can make a file.
    let sealed_off = Path::new("/sys/store.db");
    assert!(matches!(
        refusal(sealed_off, None),
        OpenProblem::NotWritable(_)
    ));
}

#[tokio::test]
async fn a_file_name_is_never_a_uri_or_a_database_in_memory() {
    // To SQLite these two would be a database in memory and a URI with options.
    let directory = tempfile::tempdir().unwrap();
    for name in [":memory:", "file:store.db?mode=memory"] {
        let path = directory.path().join(name);
        populate(&open(&path, None).unwrap()).await;
        assert!(path.is_file());
        let again = open(&path, None).unwrap();
        assert!(has_consumer(&again, "c").await);
    }
}

/// All bytes of all files of the store.
fn content(directory: &TempDir) -> Vec<u8> {
    files(directory)
        .iter()
        .flat_map(|(name, _)| fs::read(directory.path().join(name)).unwrap())
        .collect()
}

fn contains(content: &[u8], part: &str) -> bool {
    content
        .windows(part.len())
        .any(|window| window == part.as_bytes())
}

/// Fills a store with a secret of every kind and returns the texts that must not be found in a sealed one.
async fn fill(store: &Arc<Store>) -> [&'static str; 5] {
    authorize(store, allow()).await;
    let graced = countersign::records::values::record::Consumer {
        secret: "current secret".into(),
        previous_secret: Some(("graced secret".into(), NOW)),
        ..rich_consumer("rich")
    };
    store.add_consumer(graced).await.unwrap();
    assert_eq!(issue(store, "a").await, Added::Added);
    [
        "secret of ",
        "current secret",
        "graced secret",
        "$argon2id$",
        "the verifier",
    ]
}

#[tokio::test]
async fn a_sealed_file_holds_no_secret() {
    let (directory, path) = place();
    let store = open(&path, key(1)).unwrap();
    for secret in fill(&store).await {
        assert!(!contains(&content(&directory), secret), "{secret}");
    }
    drop(store);
    for secret in ["secret of ", "$argon2id$"] {
        assert!(!contains(&content(&directory), secret), "{secret}");
    }
}

#[tokio::test]
async fn a_plain_file_that_was_sealed_holds_no_secret() {
    let (directory, path) = place();
    let store = open(&path, None).unwrap();
    let secrets = fill(&store).await;
    // More than one batch, and pages that were freed.
    let mut records = exported(&store).await.records;
    for number in 0..2500 {
        let token = access_token(&format!("{number}"), "c", "u");
        records.push(Record::AccessToken(token));
    }
    store.import(import_list(records)).await.unwrap();
    let before = exported(&store).await;
    drop(store);
    for secret in secrets {
        assert!(contains(&content(&directory), secret), "{secret}");
    }

    assert!(matches!(refusal(&path, key(1)), OpenProblem::InClear));
    seal(&path).await;
    for secret in secrets {
        assert!(!contains(&content(&directory), secret), "{secret}");
    }
    let store = open(&path, key(1)).unwrap();
    assert_eq!(exported(&store).await, before);
    assert!(store.request_token("r").await.unwrap().is_some());
    drop(store);
    // From now on it opens only with this key.
    assert!(matches!(refusal(&path, None), OpenProblem::KeyMissing));
    assert!(matches!(refusal(&path, key(2)), OpenProblem::WrongKey));
    let store = open(&path, key(1)).unwrap();
    assert_eq!(exported(&store).await, before);
}

#[tokio::test]
async fn a_process_of_before_a_migration_writes_nothing() {
    let (_directory, path) = place();
    let store = open(&path, None).unwrap();
    populate(&store).await;
    let newer = Connection::open(&path).unwrap();
    newer.execute_batch("PRAGMA user_version = 9999").unwrap();
    let error = store.add_consumer(consumer("d")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)));
    assert_eq!(
        store.consumers(&Default::default(), None, 9).await.unwrap(),
        [consumer("c")]
    );
}

#[tokio::test]
async fn a_secret_moved_to_another_record_is_broken() {
    let (_directory, path) = place();
    let store = open(&path, key(1)).unwrap();
    populate(&store).await;
    store.add_consumer(consumer("d")).await.unwrap();
    execute(
        &path,
        "UPDATE consumers SET secret = (SELECT secret FROM consumers WHERE key = 'd') WHERE key = 'c'",
    );
    assert!(matches!(
        store.consumer(&id("c")).await,
        Err(StoreError::Broken(_))
    ));
    assert!(has_consumer(&store, "d").await);
}

#[tokio::test]
async fn a_lock_held_too_long_is_told_and_then_forgotten() {
    let (_directory, path) = place();
    let store = open(&path, None).unwrap();
    populate(&store).await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Readers are not blocked.
    assert!(has_consumer(&store, "c").await);
    let opening = tokio::task::spawn_blocking({
        let path = path.clone();
        move || open(&path, None).is_ok()
    });
    assert!(matches!(
        store.add_consumer(consumer("d")).await,
        Err(StoreError::Unavailable(_))
    ));
    assert!(opening.await.unwrap(), "it is read beside the lock");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(
        store.add_consumer(consumer("d")).await.unwrap(),
        Added::Added
    );
}

#[tokio::test]
async fn two_processes_may_make_the_file_at_once() {
    for _ in 0..5 {
        let (_directory, path) = place();
        let openings: Vec<_> = (0..4)
            .map(|number| {
                let path = path.clone();
                let key = key(1).filter(|_| number % 2 == 0);
                tokio::task::spawn_blocking(move || open(&path, key))
            })
            .collect();
        let mut stores = Vec::new();
        for opening in openings {
            match opening.await.unwrap() {
                Ok(store) => stores.push(store),
                // A process without the key, after one with it.
                Err(error) => assert!(matches!(error.problem, OpenProblem::KeyMissing), "{error}"),
            }
        }
        assert!(stores.len() >= 2);
        drop(stores);
        populate(&open(&path, key(1)).unwrap()).await;
    }
}

#[tokio::test]
async fn an_import_leaves_every_index() {
    let (_directory, path) = place();
    let store = open(&path, None).unwrap();
    let indexes = || {
        let sql = Connection::open(&path).unwrap();
        let find = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name";
        let mut find = sql.prepare(find).unwrap();
        let rows = find
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        rows.collect::<rusqlite::Result<Vec<(String, Option<String>)>>>()
            .unwrap()
    };
    let before = indexes();
    let records = |consumer_of_token: &str| {
        vec![
            Record::Consumer(consumer("c")),
            Record::User(user("u")),
            Record::AccessToken(access_token("t", consumer_of_token, "u")),
        ]
    };
    // Rejected, tried, into an empty table, and beside other tokens.
    let rejected = store.import(import_list(records("none"))).await.unwrap();
    assert!(matches!(rejected, Import::Rejected(..)), "{rejected:?}");
    assert_eq!(indexes(), before);
    let mut dry_run = import_list(records("c"));
    dry_run.dry_run = true;
    store.import(dry_run).await.unwrap();
    assert_eq!(indexes(), before);
    for _ in 0..2 {
        let imported = store.import(import_list(records("c"))).await.unwrap();
        assert!(matches!(imported, Import::Imported(_)), "{imported:?}");
        assert_eq!(indexes(), before);
    }
    let found = store.access_tokens(&TokenFilter::default(), None, 10).await;
    assert_eq!(found.unwrap().len(), 1);
}
