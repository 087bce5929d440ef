//! SQLite's part of the tables, and its statements.

use rusqlite::Connection;

use crate::records::store::engine::{Schema, Statements};

/// Marks a file as ours, as `schema.sql` writes it.
const APPLICATION_ID: i32 = 0x4374_5331;

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

/// Whether a build before the first release made the file.
pub(super) fn is_unreleased(sql: &Connection) -> rusqlite::Result<bool> {
    sql.prepare_cached(SCHEMA.unreleased)?.exists([])
}

/// The tables.
const SCHEMA: Schema = Schema {
    steps: &[include_str!("schema.sql")],
    exists: "SELECT 1 FROM pragma_user_version WHERE user_version > 0",
    unreleased: "SELECT 1 FROM pragma_application_id WHERE application_id = 0x4374536f",
    version: "SELECT user_version AS version FROM pragma_user_version",
    set_version: "PRAGMA user_version = ",
    rights: "",
    is_shared: false,
};

/// SQLite's statements. A transaction that writes is alone, so that nothing has to be locked.
pub(super) const STATEMENTS: Statements = Statements {
    schema: SCHEMA,
    among: "IN (SELECT value FROM json_each($1))",
    lock: "",
    skip_changes: "UPDATE sqlite_sequence SET seq = seq + $1 WHERE name = 'changes'",
    // Not the caller's clock but the system's: this time is only compared with those of other processes.
    report_changes: "
        INSERT INTO changes (at, kind, key)
        SELECT unixepoch(), value ->> 'kind', value ->> 'key' FROM json_each($1) ORDER BY key",
    feed: "SELECT seq AS position FROM sqlite_sequence WHERE name = 'changes'",
    accepted: "high_water_marks",
    skip_locked: "",
    late_indexes: "
        SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'access_tokens' AND sql IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM access_tokens)",
    wipe: "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)",
    findings: "SELECT NULL AS finding WHERE false",
};
