//! PostgreSQL's part of the tables, and its statements.

use crate::records::store::sql::{Statements, schema::Schema, tables::STEPS};

/// The schemas in which names are looked up, in this order. Our statements name the schema of everything that is ours, so
/// that no object of another role can take its place.
pub(super) const SEARCH_PATH: &str = "pg_catalog, pg_temp";

/// The locks of writers are on a table of ours: any role that may connect could hold an advisory lock.
///
/// Held by one of several writers.
pub(super) const LOCK_SHARED: &str = "LOCK TABLE countersign.writers IN ROW SHARE MODE;";
/// Held by a writer that is alone.
pub(super) const LOCK_ALONE: &str = "LOCK TABLE countersign.writers IN EXCLUSIVE MODE;";
/// As [`LOCK_ALONE`], and makes the table. To create either takes a right that is not needed if it exists; if another
/// process is just creating it, this one waits for that process.
pub(super) const LOCK_SCHEMA: &str = "
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

/// The SQL of [`STEPS`] that PostgreSQL writes differently, replaced in this order. Keys are compared by their bytes.
const WORDS: &[(&str, &str)] = &[
    ("INTEGER PRIMARY KEY AUTOINCREMENT", "bigint PRIMARY KEY"),
    ("INTEGER", "bigint"),
    ("INT ", "boolean "),
    ("BLOB", "bytea"),
    ("TEXT", r#"text COLLATE "C""#),
    (" STRICT, WITHOUT ROWID", ""),
    (" STRICT", ""),
];

/// The additions of PostgreSQL to each step.
const OWN: &[&str] = &["
    -- The functions of SQLite that statements use.
    CREATE FUNCTION countersign.unixepoch() RETURNS bigint LANGUAGE sql AS
        $$ SELECT extract(epoch FROM clock_timestamp())::bigint $$;
    CREATE FUNCTION countersign.unhex(digits text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT decode(digits, 'hex') $$;
    CREATE FUNCTION countersign.json_each(list text) RETURNS TABLE (value json) LANGUAGE sql IMMUTABLE AS
        $$ SELECT json_array_elements(list::json) $$;

    -- `feed` has the newest id of `changes`.
    ALTER TABLE countersign.meta ADD COLUMN version bigint NOT NULL;
    INSERT INTO countersign.meta (id, version) VALUES (md5(random()::text || clock_timestamp()::text), 0);
    CREATE TABLE countersign.feed (position bigint NOT NULL);
    INSERT INTO countersign.feed (position) VALUES (1);

    -- Shared nonces. A partition, `nonces_` and its number, holds the timestamps of 300 seconds.
    CREATE TABLE countersign.nonces (
        second bigint NOT NULL,
        digest bytea NOT NULL,
        PRIMARY KEY (second, digest)
    ) PARTITION BY RANGE (second);
    ALTER TABLE countersign.nonces ALTER digest SET STORAGE PLAIN;

    -- Nonces up to the timestamp `floor` were dropped, and those up to `lost` may have been lost by a failover; neither
    -- is fresh again. `server` is where nonces were recorded last.
    CREATE TABLE countersign.nonce_state (floor bigint NOT NULL, lost bigint NOT NULL, server text);
    INSERT INTO countersign.nonce_state (floor, lost) VALUES (0, 0);

    -- Another value after a promotion of a standby, a recovery to a point in time, and a restore of a dump.
    CREATE FUNCTION countersign.nonce_server() RETURNS text LANGUAGE sql STABLE AS $$
        SELECT (SELECT system_identifier::text FROM pg_control_system())
            || '/' || (SELECT oid::text FROM pg_database WHERE datname = current_database())
            || '/' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
    $$;

    -- Makes a partition if it is missing and above the floor. It is attached and not created in its place, because that
    -- waits for nobody who reads or writes the others.
    CREATE FUNCTION countersign.make_nonce_slot(slot bigint) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT FROM pg_tables WHERE schemaname = 'countersign' AND tablename = 'nonces_' || slot) THEN
            RETURN;
        END IF;
        PERFORM set_config('lock_timeout', '200', true);
        LOCK TABLE countersign.nonce_state IN SHARE UPDATE EXCLUSIVE MODE;
        IF EXISTS (SELECT FROM pg_tables WHERE schemaname = 'countersign' AND tablename = 'nonces_' || slot)
            OR (slot + 1) * 300 - 1 <= (SELECT floor FROM countersign.nonce_state) THEN
            RETURN;
        END IF;
        EXECUTE format('CREATE TABLE countersign.nonces_%s (LIKE countersign.nonces INCLUDING ALL)', slot);
        EXECUTE format('ALTER TABLE countersign.nonces ATTACH PARTITION countersign.nonces_%s
            FOR VALUES FROM (%s) TO (%s)', slot, slot * 300, (slot + 1) * 300);
    END
    $$;

    -- Drops the oldest partition if all of it is before `old` by the clock of the caller, and older than
    -- `age` by the server's; `false`: there is none. An insertion meanwhile waits, and then sees the floor.
    CREATE FUNCTION countersign.drop_nonce_slot(old bigint, age bigint) RETURNS boolean LANGUAGE plpgsql AS $$
    DECLARE
        oldest bigint;
    BEGIN
        PERFORM set_config('lock_timeout', '100', true);
        LOCK TABLE countersign.nonce_state IN SHARE UPDATE EXCLUSIVE MODE;
        SELECT min(substr(tablename, 8)::bigint) INTO oldest FROM pg_tables
            WHERE schemaname = 'countersign' AND tablename ~ '^nonces_[0-9]+$';
        IF oldest IS NULL OR (oldest + 1) * 300 > least(old, extract(epoch FROM clock_timestamp())::bigint - age) THEN
            RETURN false;
        END IF;
        LOCK TABLE countersign.nonces IN ACCESS EXCLUSIVE MODE;
        UPDATE countersign.nonce_state SET floor = greatest(floor, (oldest + 1) * 300 - 1);
        EXECUTE format('DROP TABLE countersign.nonces_%s', oldest);
        RETURN true;
    END
    $$;
"];

/// The tables.
pub(super) const SCHEMA: Schema = Schema {
    steps: STEPS,
    own: OWN,
    words: WORDS,
    // LOCK_SCHEMA has created what a lock needs.
    create: "",
    // Reads the tables, because `to_regclass` may answer from before the lock was taken.
    exists: "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'countersign' AND tablename = 'marks'",
    version: "SELECT version FROM countersign.meta",
    set_version: "UPDATE countersign.meta SET version = ",
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
        ), kept AS (
            INSERT INTO countersign.changes (id, at, kind, key)
            SELECT head.position - (SELECT count(*) FROM new) + new.number,
                countersign.unixepoch(), new.kind, new.key
            FROM head, new
        )
        SELECT pg_notify('countersign', '')",
    feed: "SELECT position FROM countersign.feed",
    accepted: "(SELECT until FROM countersign.marks UNION ALL SELECT max(second) FROM countersign.nonces
        UNION ALL SELECT nullif(greatest(floor, lost), 0) FROM countersign.nonce_state) AS accepted",
    skip_locked: "FOR UPDATE SKIP LOCKED",
    wipe: "",
};
