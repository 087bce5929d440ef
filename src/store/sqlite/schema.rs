//! The tables and SQLite's words.

use rusqlite::Connection;

use crate::store::sql::{Statements, schema::Schema};

/// Marks a file as ours: `CtSn`.
const APPLICATION_ID: i32 = 0x4374_536e;

/// The steps from an empty file to the newest schema; `user_version` counts those taken. A step that was released is
/// never changed.
const MIGRATIONS: &[&str] = &[
    // Times are seconds since 1970; lists are JSON; secrets are what `seal` keeps.
    "
    CREATE TABLE meta (
        name TEXT PRIMARY KEY NOT NULL,
        value ANY NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE consumers (
        key TEXT PRIMARY KEY NOT NULL,
        secret BLOB NOT NULL,
        previous_secret BLOB,
        previous_until INTEGER,
        rsa_public_key TEXT,
        name TEXT NOT NULL,
        callbacks TEXT NOT NULL,
        permissions TEXT NOT NULL,
        dialect TEXT CHECK (dialect IN ('rfc5849', 'legacy')),
        enforce INTEGER NOT NULL CHECK (enforce IN (0, 1)),
        enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
        created_at INTEGER NOT NULL,
        CHECK ((previous_secret IS NULL) = (previous_until IS NULL))
    ) STRICT;

    CREATE TABLE users (
        id TEXT PRIMARY KEY NOT NULL,
        name TEXT NOT NULL UNIQUE COLLATE NOCASE,
        display_name TEXT,
        password_hash BLOB,
        enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
        created_at INTEGER NOT NULL
    ) STRICT;

    -- Ids of removed users, never to be used again.
    CREATE TABLE removed_users (id TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;

    -- Tokens outlive their user, revoked, so that the identifier stays taken.
    CREATE TABLE access_tokens (
        token TEXT PRIMARY KEY NOT NULL,
        secret BLOB NOT NULL,
        consumer TEXT NOT NULL REFERENCES consumers (key),
        user TEXT NOT NULL,
        permissions TEXT NOT NULL,
        issued_at INTEGER NOT NULL,
        expires_at INTEGER,
        last_used_at INTEGER,
        revoked_at INTEGER
    ) STRICT;
    CREATE INDEX access_tokens_of_consumer ON access_tokens (consumer, token);
    CREATE INDEX access_tokens_of_user ON access_tokens (user, token);

    -- Identifiers of access tokens that went with their consumer, never to be used again.
    CREATE TABLE removed_tokens (token TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;

    CREATE TABLE request_tokens (
        token TEXT PRIMARY KEY NOT NULL,
        secret BLOB NOT NULL,
        consumer TEXT NOT NULL REFERENCES consumers (key),
        callback TEXT, -- NULL: out of band
        permissions TEXT NOT NULL,
        issued_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        state TEXT NOT NULL
            CHECK (state IN ('issued', 'authorized', 'denied', 'exchanged', 'voided')),
        user TEXT,
        verifier BLOB,
        redirect_token TEXT UNIQUE,
        wrong_verifiers INTEGER NOT NULL,
        CHECK ((state = 'authorized') = (user IS NOT NULL)),
        CHECK ((state = 'authorized') = (verifier IS NOT NULL))
    ) STRICT;
    CREATE INDEX request_tokens_of_consumer ON request_tokens (consumer);
    CREATE INDEX request_tokens_of_user ON request_tokens (user) WHERE user IS NOT NULL;
    CREATE INDEX request_tokens_by_end ON request_tokens (expires_at);

    CREATE TABLE sessions (
        id_hash BLOB PRIMARY KEY NOT NULL,
        user TEXT NOT NULL REFERENCES users (id),
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_of_user ON sessions (user);
    CREATE INDEX sessions_by_end ON sessions (expires_at);

    CREATE TABLE changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('consumer', 'access_token', 'user')),
        key TEXT NOT NULL
    ) STRICT;
    CREATE INDEX changes_by_time ON changes (at);
    -- The first id is 2: a reader that asks from 0 only wants to know the newest id.
    INSERT INTO sqlite_sequence (name, seq) VALUES ('changes', 1);
    ",
    // The cost of checking each password hash, in clear: a login does the work of all costs. And the SHA-256 of
    // the hash that a login has replaced by one of the same password.
    "
    ALTER TABLE users ADD COLUMN password_cost TEXT;
    ALTER TABLE users ADD COLUMN replaced_hash BLOB;
    CREATE INDEX users_by_password_cost ON users (password_cost) WHERE password_cost IS NOT NULL;
    ",
    // A consumer may be restricted to its RSA key.
    "
    ALTER TABLE consumers ADD COLUMN rsa_only INTEGER NOT NULL DEFAULT 0 CHECK (rsa_only IN (0, 1));
    ",
    // The feed tells of commands too. Its ids go on, also if it is empty.
    "
    ALTER TABLE changes RENAME TO changes_before;
    CREATE TABLE changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('consumer', 'access_token', 'user', 'command')),
        key TEXT NOT NULL
    ) STRICT;
    INSERT INTO changes SELECT * FROM changes_before;
    DELETE FROM sqlite_sequence WHERE name = 'changes';
    INSERT INTO sqlite_sequence SELECT 'changes', seq FROM sqlite_sequence WHERE name = 'changes_before';
    DROP TABLE changes_before;
    CREATE INDEX changes_by_time ON changes (at);
    ",
    // The texts about a consumer on the consent page.
    "
    ALTER TABLE consumers ADD COLUMN description TEXT;
    ALTER TABLE consumers ADD COLUMN website TEXT;
    ",
    // A random name of the store, by which an import knows an export of the same store.
    "
    INSERT OR IGNORE INTO meta (name, value) VALUES ('id', lower(hex(randomblob(16))));
    ",
    // The key that seals is no property of the store any more.
    "DELETE FROM meta WHERE name = 'sealed';",
    // Keys of removed consumers, never to be used again.
    "
    CREATE TABLE removed_consumers (key TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
    ",
    // The browser of a session, by which its user recognizes it.
    "
    ALTER TABLE sessions ADD COLUMN browser TEXT;
    ALTER TABLE sessions ADD COLUMN system TEXT;
    ",
    // The last verified call of each consumer.
    "
    CREATE TABLE consumer_uses (
        consumer TEXT PRIMARY KEY NOT NULL REFERENCES consumers (key),
        last_used_at INTEGER NOT NULL,
        method TEXT NOT NULL,
        dialect TEXT NOT NULL CHECK (dialect IN ('rfc5849', 'legacy'))
    ) STRICT, WITHOUT ROWID;
    ",
    // Lists begin with the access tokens that have been unused for longest.
    "
    CREATE INDEX access_tokens_by_use ON access_tokens (coalesce(last_used_at, issued_at), token)
        WHERE revoked_at IS NULL;
    ",
    // The overview lists previous secrets that still verify.
    "
    CREATE INDEX consumers_in_grace ON consumers (previous_until) WHERE previous_until IS NOT NULL;
    ",
    // Whether a consumer has a token that was used lately.
    "
    CREATE INDEX access_tokens_of_consumer_by_use ON access_tokens (consumer, coalesce(last_used_at, issued_at));
    ",
];

/// The schema of the file: 0 for an empty one.
pub(super) fn version(sql: &Connection) -> rusqlite::Result<i64> {
    sql.prepare_cached(SCHEMA.version)?
        .query_row([], |row| row.get(0))
}

/// Whether an empty file, or one of ours.
pub(super) fn is_ours(sql: &Connection) -> rusqlite::Result<bool> {
    // One transaction, for another process may be making the file just now.
    let sql = sql.unchecked_transaction()?;
    let id: i32 = sql.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = sql.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(id == APPLICATION_ID || (id == 0 && tables == 0 && version(&sql)? == 0))
}

/// The tables.
pub(super) const SCHEMA: Schema = Schema {
    steps: MIGRATIONS,
    create: "PRAGMA application_id = 0x4374536e",
    exists: "SELECT 1 FROM pragma_user_version WHERE user_version > 0",
    version: "SELECT user_version AS version FROM pragma_user_version",
    set_version: "PRAGMA user_version = ",
    is_shared: false,
};

/// SQLite's words. A transaction that writes is alone, so that nothing has to be locked.
pub(super) const STATEMENTS: Statements = Statements {
    schema: SCHEMA,
    now: "unixepoch()",
    among: "IN (SELECT value FROM json_each($1))",
    like: "LIKE",
    // The column's collation folds ASCII letters and no others.
    user_by_name: "SELECT * FROM users WHERE name = $1",
    lock_user: "",
    lock_token: "",
    insert_tokens: "
        INSERT INTO access_tokens (token, secret, consumer, user, permissions,
            issued_at, expires_at, last_used_at, revoked_at)
        SELECT value ->> 0, unhex(value ->> 1), value ->> 2, value ->> 3, value ->> 4,
            value ->> 5, value ->> 6, value ->> 7, value ->> 8
        FROM json_each($1)
        WHERE NOT EXISTS (SELECT 1 FROM removed_tokens WHERE token = value ->> 0)
        ON CONFLICT (token) DO NOTHING",
    record_uses: "
        UPDATE access_tokens SET last_used_at = used.at
        FROM (SELECT value ->> 0 AS token, max(value ->> 1) AS at FROM json_each($1) GROUP BY 1) AS used
        WHERE access_tokens.token = used.token AND (last_used_at IS NULL OR last_used_at < used.at)",
    record_consumer_uses: "
        INSERT INTO consumer_uses (consumer, last_used_at, method, dialect)
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each($1)
        WHERE EXISTS (SELECT 1 FROM consumers WHERE key = value ->> 0)
        ON CONFLICT (consumer) DO UPDATE SET last_used_at = excluded.last_used_at,
            method = excluded.method, dialect = excluded.dialect
        WHERE consumer_uses.last_used_at < excluded.last_used_at",
    skip_changes: "UPDATE sqlite_sequence SET seq = seq + $1 WHERE name = 'changes'",
    // Not the caller's clock but the system's: this time is only compared with those of other processes.
    report_changes: "
        INSERT INTO changes (at, kind, key)
        SELECT unixepoch(), value ->> 0, value ->> 1 FROM json_each($1) ORDER BY key",
    feed: "SELECT seq AS position FROM sqlite_sequence WHERE name = 'changes'",
    mark: "SELECT (SELECT value FROM meta WHERE name = $1) AS mark",
    raise_mark: "
        INSERT INTO meta (name, value) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE excluded.value > value",
    origin: "
        SELECT (SELECT value FROM meta WHERE name = 'id') AS id, (SELECT max(value) FROM meta
            WHERE name IN ('local_nonces_until', 'imported_nonces_until')) AS accepted_until",
    skip_locked: "",
    wipe: "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)",
};
