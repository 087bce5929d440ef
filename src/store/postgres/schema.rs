//! PostgreSQL's part of the tables, and its statements.

use crate::store::sql::{Statements, schema::Schema, tables::STEPS};

/// The schemas in which our statements look for names, in this order.
pub(super) const SEARCH_PATH: &str = "countersign";

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
    CREATE FUNCTION unixepoch() RETURNS bigint LANGUAGE sql AS
        $$ SELECT extract(epoch FROM clock_timestamp())::bigint $$;
    CREATE FUNCTION unhex(digits text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT decode(digits, 'hex') $$;
    CREATE FUNCTION json_each(list text) RETURNS TABLE (value json) LANGUAGE sql IMMUTABLE AS
        $$ SELECT json_array_elements(list::json) $$;

    -- `feed` has the newest id of `changes`.
    ALTER TABLE meta ADD COLUMN version bigint NOT NULL;
    INSERT INTO meta (id, version) VALUES (md5(random()::text || clock_timestamp()::text), 0);
    CREATE TABLE feed (position bigint NOT NULL);
    INSERT INTO feed (position) VALUES (1);

    -- Shared nonces. A partition, `nonces_` and its number, holds the timestamps of 300 seconds.
    CREATE TABLE nonces (
        second bigint NOT NULL,
        digest bytea NOT NULL,
        PRIMARY KEY (second, digest)
    ) PARTITION BY RANGE (second);
    ALTER TABLE nonces ALTER digest SET STORAGE PLAIN;

    -- Nonces up to the timestamp `floor` were dropped, and those up to `lost` may have been lost by a failover; neither
    -- is fresh again. `server` is where nonces were recorded last.
    CREATE TABLE nonce_state (floor bigint NOT NULL, lost bigint NOT NULL, server text);
    INSERT INTO nonce_state (floor, lost) VALUES (0, 0);

    -- Another value after a promotion of a standby, a recovery to a point in time, and a restore of a dump.
    CREATE FUNCTION nonce_server() RETURNS text LANGUAGE sql STABLE AS $$
        SELECT (SELECT system_identifier::text FROM pg_control_system())
            || '/' || (SELECT oid::text FROM pg_database WHERE datname = current_database())
            || '/' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
    $$;

    -- Makes a partition if it is missing and above the floor. It is attached and not created in its place, because that
    -- waits for nobody who reads or writes the others.
    CREATE FUNCTION make_nonce_slot(slot bigint) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT FROM pg_tables WHERE schemaname = 'countersign' AND tablename = 'nonces_' || slot) THEN
            RETURN;
        END IF;
        PERFORM set_config('lock_timeout', '200', true);
        PERFORM pg_advisory_xact_lock(hashtext('countersign.nonces'));
        IF EXISTS (SELECT FROM pg_tables WHERE schemaname = 'countersign' AND tablename = 'nonces_' || slot)
            OR (slot + 1) * 300 - 1 <= (SELECT floor FROM nonce_state) THEN
            RETURN;
        END IF;
        EXECUTE format('CREATE TABLE countersign.nonces_%s (LIKE countersign.nonces INCLUDING ALL)', slot);
        EXECUTE format('ALTER TABLE countersign.nonces ATTACH PARTITION countersign.nonces_%s
            FOR VALUES FROM (%s) TO (%s)', slot, slot * 300, (slot + 1) * 300);
    END
    $$;

    -- Drops the oldest partition if all of it is before `old` by the clock of the caller, and older than
    -- `age` by the server's; `false`: there is none. An insertion meanwhile waits, and then sees the floor.
    CREATE FUNCTION drop_nonce_slot(old bigint, age bigint) RETURNS boolean LANGUAGE plpgsql AS $$
    DECLARE
        oldest bigint;
    BEGIN
        PERFORM set_config('lock_timeout', '100', true);
        PERFORM pg_advisory_xact_lock(hashtext('countersign.nonces'));
        SELECT min(substr(tablename, 8)::bigint) INTO oldest FROM pg_tables
            WHERE schemaname = 'countersign' AND tablename ~ '^nonces_[0-9]+$';
        IF oldest IS NULL OR (oldest + 1) * 300 > least(old, extract(epoch FROM clock_timestamp())::bigint - age) THEN
            RETURN false;
        END IF;
        LOCK TABLE nonces IN ACCESS EXCLUSIVE MODE;
        UPDATE nonce_state SET floor = greatest(floor, (oldest + 1) * 300 - 1);
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
    // Creating it takes a right that is not needed if it exists.
    create: "
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'countersign') THEN
                CREATE SCHEMA countersign;
            END IF;
        END $$",
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
    skip_changes: "UPDATE feed SET position = position + $1",
    // The row of the feed is locked until the commit.
    report_changes: "
        WITH new AS (
            SELECT change ->> 'kind' AS kind, change ->> 'key' AS key, number
            FROM json_array_elements($1::text::json) WITH ORDINALITY AS new (change, number)
        ), head AS (
            UPDATE feed SET position = position + (SELECT count(*) FROM new) RETURNING position
        ), kept AS (
            INSERT INTO changes (id, at, kind, key)
            SELECT head.position - (SELECT count(*) FROM new) + new.number,
                unixepoch(), new.kind, new.key
            FROM head, new
        )
        SELECT pg_notify('countersign', '')",
    feed: "SELECT position FROM feed",
    accepted: "(SELECT until FROM marks UNION ALL SELECT max(second) FROM nonces
        UNION ALL SELECT nullif(greatest(floor, lost), 0) FROM nonce_state) AS accepted",
    skip_locked: "FOR UPDATE SKIP LOCKED",
    wipe: "",
};
