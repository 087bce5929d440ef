//! PostgreSQL's part of the tables, and its statements.

use crate::records::store::engine::{Schema, Statements};

/// The schemas in which names are looked up, in this order. Our statements name the schema of everything that is ours, so
/// that no object of another role can take its place.
pub(super) const SEARCH_PATH: &str = "pg_catalog, pg_temp";

/// The locks of writers are on a table of ours: any role that may connect could hold an advisory lock.
///
/// Held by one of several writers.
pub(super) const LOCK_SHARED: &str = "LOCK TABLE countersign.writers IN ROW SHARE MODE;";
/// Held by a writer that is alone.
pub(super) const LOCK_EXCLUSIVE: &str = "LOCK TABLE countersign.writers IN EXCLUSIVE MODE;";
/// The session that holds [`LOCK_EXCLUSIVE`].
pub(super) const WRITER: &str = "
    SELECT format('%s (%ssession %s of PostgreSQL, since %s)', coalesce(nullif(application_name, ''), usename, 'another role'),
        'on ' || host(client_addr) || ', ', pid, to_char(xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'))
    FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE relation = 'countersign.writers'::regclass AND mode = 'ExclusiveLock' AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
/// As [`LOCK_EXCLUSIVE`], and makes the table. To create either takes a right that is not needed if it exists; if another
/// process is just creating it, this one waits for that process.
pub(super) const LOCK_MIGRATION: &str = "
    DO $$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'countersign') THEN
            CREATE SCHEMA countersign;
        END IF;
        IF NOT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'countersign' AND tablename = 'writers') THEN
            CREATE TABLE countersign.writers ();
        END IF;
    EXCEPTION WHEN unique_violation OR duplicate_schema OR duplicate_table THEN
        NULL;
    END $$;
    LOCK TABLE countersign.writers IN EXCLUSIVE MODE;";

/// The tables.
const SCHEMA: Schema = Schema {
    // LOCK_MIGRATION has made the schema, and the table that it locks.
    steps: &[include_str!("schema.sql")],
    // Reads the tables, because `to_regclass` may answer from before the lock was taken.
    exists: "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'countersign' AND tablename = 'meta'",
    unreleased: "
        SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'countersign' AND tablename = 'meta' AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'countersign' AND tablename = 'high_water_marks')",
    version: "SELECT version FROM countersign.meta",
    set_version: "UPDATE countersign.meta SET version = ",
    rights: "
        WITH made AS (
            SELECT CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'countersign') THEN 1 ELSE 0 END AS made
        )
        SELECT format('GRANT CREATE ON DATABASE %I TO %I', current_database(), current_user) AS rights FROM made
        WHERE made = 0 AND NOT has_database_privilege(current_database(), 'CREATE')
        UNION ALL
        SELECT format('ALTER SCHEMA countersign OWNER TO %I', current_user) FROM made
        WHERE made = 1 AND NOT EXISTS (SELECT FROM pg_catalog.pg_namespace
            WHERE nspname = 'countersign' AND has_schema_privilege(oid, 'CREATE') AND has_schema_privilege(oid, 'USAGE'))",
    is_shared: true,
};

/// PostgreSQL's statements.
pub(super) const STATEMENTS: Statements = Statements {
    schema: SCHEMA,
    among: "= ANY(ARRAY(SELECT json_array_elements_text($1::text::json)))",
    lock: "FOR NO KEY UPDATE",
    skip_changes: "UPDATE countersign.feed SET position = position + $1",
    // The row of the feed is locked until the commit.
    report_changes: "
        WITH new AS (
            SELECT change ->> 'kind' AS kind, change ->> 'key' AS key, number
            FROM json_array_elements($1::text::json) WITH ORDINALITY AS new (change, number)
        ), head AS (
            UPDATE countersign.feed SET position = position + (SELECT count(*) FROM new) RETURNING position
        ), inserted AS (
            INSERT INTO countersign.changes (id, at, kind, key)
            SELECT head.position - (SELECT count(*) FROM new) + new.number,
                countersign.unixepoch(), new.kind, new.key
            FROM head, new
        )
        SELECT pg_notify('countersign', '')",
    feed: "SELECT position FROM countersign.feed",
    accepted: "(SELECT until FROM countersign.high_water_marks UNION ALL SELECT max(second) FROM countersign.nonces
        UNION ALL SELECT nullif(greatest(floor, lost), 0) FROM countersign.nonce_state) AS accepted",
    skip_locked: "FOR UPDATE SKIP LOCKED",
    late_indexes: "",
    wipe: "",
    // Writes can only reach a primary; it is a standby while a failover is under way.
    findings: "
        SELECT name || ' is off: ' || loses || '; set ' || name || ' = on' AS finding FROM pg_settings JOIN (VALUES
            ('synchronous_commit', 'the server acknowledges before it has written, so its crash revives a used token or a revoked one'),
            ('fsync', 'a power loss can destroy the whole database'),
            ('full_page_writes', 'a power loss can damage pages of the database')
        ) AS risks (setting_name, loses) ON name = setting_name
        WHERE setting = 'off'
        UNION ALL
        SELECT 'the server is a standby, which takes no writes; name the primary, or all hosts' WHERE pg_is_in_recovery()
        ORDER BY finding",
};
