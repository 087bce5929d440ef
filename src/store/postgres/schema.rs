//! The tables and PostgreSQL's words.

use crate::store::sql::{Statements, schema::Schema};

/// The steps from an empty database to the newest schema; `meta.version` counts those taken. A step that was released
/// is never changed.
const MIGRATIONS: &[&str] = &[
    // Times are seconds since 1970; lists are JSON; secrets are what `seal` keeps. Keys are compared by their bytes.
    r#"
    CREATE TABLE meta (
        version integer NOT NULL,
        sealed bytea,
        local_nonces_until bigint
    );
    INSERT INTO meta (version) VALUES (0);

    CREATE TABLE consumers (
        key text COLLATE "C" PRIMARY KEY,
        secret bytea NOT NULL,
        previous_secret bytea,
        previous_until bigint,
        rsa_public_key text,
        name text NOT NULL,
        callbacks text NOT NULL,
        permissions text NOT NULL,
        dialect text CHECK (dialect IN ('rfc5849', 'legacy')),
        enforce boolean NOT NULL,
        enabled boolean NOT NULL,
        created_at bigint NOT NULL,
        CHECK ((previous_secret IS NULL) = (previous_until IS NULL))
    );

    CREATE TABLE users (
        id text COLLATE "C" PRIMARY KEY,
        name text COLLATE "C" NOT NULL,
        display_name text,
        password_hash bytea,
        -- What the hash costs to check, in clear: a login does the work of all costs there are.
        password_cost text COLLATE "C",
        -- The SHA-256 of the hash that a login has replaced by one of the same password.
        replaced_hash bytea,
        enabled boolean NOT NULL,
        created_at bigint NOT NULL
    );
    -- In this collation only ASCII letters have two cases.
    CREATE UNIQUE INDEX users_by_name ON users (lower(name));
    CREATE INDEX users_by_password_cost ON users (password_cost) WHERE password_cost IS NOT NULL;

    -- Ids of removed users, never to be used again.
    CREATE TABLE removed_users (id text COLLATE "C" PRIMARY KEY);

    -- Tokens outlive their user, revoked, so that the identifier stays taken.
    CREATE TABLE access_tokens (
        token text COLLATE "C" PRIMARY KEY,
        secret bytea NOT NULL,
        consumer text COLLATE "C" NOT NULL REFERENCES consumers (key),
        "user" text COLLATE "C" NOT NULL,
        permissions text NOT NULL,
        issued_at bigint NOT NULL,
        expires_at bigint,
        last_used_at bigint,
        revoked_at bigint
    );
    CREATE INDEX access_tokens_of_consumer ON access_tokens (consumer, token);
    CREATE INDEX access_tokens_of_user ON access_tokens ("user", token);

    -- Identifiers of access tokens that went with their consumer, never to be used again.
    CREATE TABLE removed_tokens (token text COLLATE "C" PRIMARY KEY);

    CREATE TABLE request_tokens (
        token text COLLATE "C" PRIMARY KEY,
        secret bytea NOT NULL,
        consumer text COLLATE "C" NOT NULL REFERENCES consumers (key),
        callback text, -- NULL: out of band
        permissions text NOT NULL,
        issued_at bigint NOT NULL,
        expires_at bigint NOT NULL,
        state text NOT NULL
            CHECK (state IN ('issued', 'authorized', 'denied', 'exchanged', 'voided')),
        "user" text COLLATE "C",
        verifier bytea,
        redirect_token text COLLATE "C" UNIQUE,
        wrong_verifiers bigint NOT NULL,
        CHECK ((state = 'authorized') = ("user" IS NOT NULL)),
        CHECK ((state = 'authorized') = (verifier IS NOT NULL))
    );
    CREATE INDEX request_tokens_of_consumer ON request_tokens (consumer);
    CREATE INDEX request_tokens_of_user ON request_tokens ("user") WHERE "user" IS NOT NULL;
    CREATE INDEX request_tokens_by_end ON request_tokens (expires_at);

    CREATE TABLE sessions (
        id_hash bytea PRIMARY KEY,
        "user" text COLLATE "C" NOT NULL REFERENCES users (id),
        created_at bigint NOT NULL,
        expires_at bigint NOT NULL
    );
    CREATE INDEX sessions_of_user ON sessions ("user");
    CREATE INDEX sessions_by_end ON sessions (expires_at);

    -- What was changed, in the order of commits and without gaps; `feed` has the newest id. It begins at 1, because to
    -- ask from 0 is to ask only where the feed stands.
    CREATE TABLE feed (position bigint NOT NULL);
    INSERT INTO feed (position) VALUES (1);
    CREATE TABLE changes (
        id bigint PRIMARY KEY,
        at bigint NOT NULL,
        kind text NOT NULL CHECK (kind IN ('consumer', 'access_token', 'user')),
        key text NOT NULL
    );
    CREATE INDEX changes_by_time ON changes (at);
    "#,
    // Shared nonces. A partition, `nonces_` and its number, holds the timestamps of 300 seconds.
    r#"
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
    "#,
    // A consumer may be restricted to its RSA key.
    "ALTER TABLE consumers ADD COLUMN rsa_only boolean NOT NULL DEFAULT false;",
    // The feed tells of commands too.
    "
    ALTER TABLE changes DROP CONSTRAINT changes_kind_check;
    ALTER TABLE changes ADD CONSTRAINT changes_kind_check
        CHECK (kind IN ('consumer', 'access_token', 'user', 'command'));
    ",
    // The texts about a consumer on the consent page.
    "ALTER TABLE consumers ADD COLUMN description text, ADD COLUMN website text;",
    // The feed tells of failed logins too.
    "
    ALTER TABLE changes DROP CONSTRAINT changes_kind_check;
    ALTER TABLE changes ADD CONSTRAINT changes_kind_check
        CHECK (kind IN ('consumer', 'access_token', 'user', 'command', 'failed_login'));
    ",
    // A random name of the store, by which an import knows an export of the same store; and the last timestamp that a
    // store whose records were imported may have accepted.
    "
    ALTER TABLE meta ADD COLUMN id text, ADD COLUMN imported_nonces_until bigint;
    UPDATE meta SET id = md5(random()::text || clock_timestamp()::text);
    ",
    // The key that seals is no property of the store any more.
    "ALTER TABLE meta DROP COLUMN sealed;",
    // Keys of removed consumers, never to be used again.
    r#"
    CREATE TABLE removed_consumers (key text COLLATE "C" PRIMARY KEY);
    "#,
    // The browser of a session, by which its user recognizes it.
    "ALTER TABLE sessions ADD COLUMN browser text, ADD COLUMN system text;",
    // The last verified call of each consumer.
    r#"
    CREATE TABLE consumer_uses (
        consumer text COLLATE "C" PRIMARY KEY REFERENCES consumers (key),
        last_used_at bigint NOT NULL,
        method text NOT NULL,
        dialect text NOT NULL CHECK (dialect IN ('rfc5849', 'legacy'))
    );
    "#,
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

/// The tables.
pub(super) const SCHEMA: Schema = Schema {
    steps: MIGRATIONS,
    // To create it takes a right that is not needed if it is there.
    create: "
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'countersign') THEN
                CREATE SCHEMA countersign;
            END IF;
        END $$",
    // The tables are asked, for `to_regclass` may answer from before the lock was had.
    exists: "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'countersign' AND tablename = 'meta'",
    version: "SELECT version FROM countersign.meta",
    set_version: "UPDATE countersign.meta SET version = ",
    is_shared: true,
};

/// PostgreSQL's words.
pub(super) const STATEMENTS: Statements = Statements {
    schema: SCHEMA,
    now: "extract(epoch FROM clock_timestamp())::bigint",
    among: "= ANY(ARRAY(SELECT json_array_elements_text($1::text::json)))",
    // This collation folds ASCII letters and no others, which takes a third of the time.
    like: "COLLATE \"C\" ILIKE",
    user_by_name: r#"SELECT * FROM users WHERE lower(name) = lower($1 COLLATE "C")"#,
    lock_user: "FOR NO KEY UPDATE",
    lock_token: "FOR UPDATE",
    insert_tokens: r#"
        INSERT INTO access_tokens (token, secret, consumer, "user", permissions,
            issued_at, expires_at, last_used_at, revoked_at)
        SELECT new ->> 0, decode(new ->> 1, 'hex'), new ->> 2, new ->> 3, new ->> 4,
            (new ->> 5)::bigint, (new ->> 6)::bigint, (new ->> 7)::bigint, (new ->> 8)::bigint
        FROM json_array_elements($1::text::json) AS new
        WHERE NOT EXISTS (SELECT 1 FROM removed_tokens WHERE token = new ->> 0)
        ON CONFLICT (token) DO NOTHING"#,
    // Rows are locked in one order, or two processes could wait for each other. A token may be listed twice.
    record_uses: "
        WITH latest AS (
            SELECT used ->> 0 AS token, max((used ->> 1)::bigint) AS at
            FROM json_array_elements($1::text::json) AS used GROUP BY used ->> 0
        ), locked AS (
            SELECT access_tokens.token, latest.at FROM access_tokens
            JOIN latest ON latest.token = access_tokens.token
            WHERE last_used_at IS NULL OR last_used_at < latest.at
            ORDER BY access_tokens.token FOR NO KEY UPDATE OF access_tokens
        )
        UPDATE access_tokens SET last_used_at = locked.at FROM locked
        WHERE access_tokens.token = locked.token",
    // As above.
    record_consumer_uses: "
        INSERT INTO consumer_uses (consumer, last_used_at, method, dialect)
        SELECT DISTINCT ON (key) key, (used ->> 1)::bigint, used ->> 2, used ->> 3
        FROM json_array_elements($1::text::json) AS used JOIN consumers ON key = used ->> 0
        ORDER BY key, (used ->> 1)::bigint DESC
        ON CONFLICT (consumer) DO UPDATE SET last_used_at = excluded.last_used_at,
            method = excluded.method, dialect = excluded.dialect
        WHERE consumer_uses.last_used_at < excluded.last_used_at",
    skip_changes: "UPDATE feed SET position = position + $1",
    // The row of the feed is locked until the commit.
    report_changes: "
        WITH new AS (
            SELECT change ->> 0 AS kind, change ->> 1 AS key, number
            FROM json_array_elements($1::text::json) WITH ORDINALITY AS new (change, number)
        ), head AS (
            UPDATE feed SET position = position + (SELECT count(*) FROM new) RETURNING position
        ), kept AS (
            INSERT INTO changes (id, at, kind, key)
            SELECT head.position - (SELECT count(*) FROM new) + new.number,
                extract(epoch FROM clock_timestamp())::bigint, new.kind, new.key
            FROM head, new
        )
        SELECT pg_notify('countersign', '')",
    feed: "SELECT position FROM feed",
    mark: "
        SELECT CASE $1::text WHEN 'local_nonces_until' THEN local_nonces_until
            ELSE imported_nonces_until END AS mark FROM meta",
    // The greatest ignores what is null.
    raise_mark: "
        UPDATE meta SET
            local_nonces_until = CASE $1::text WHEN 'local_nonces_until'
                THEN greatest(local_nonces_until, $2) ELSE local_nonces_until END,
            imported_nonces_until = CASE $1::text WHEN 'imported_nonces_until'
                THEN greatest(imported_nonces_until, $2) ELSE imported_nonces_until END",
    origin: "
        SELECT id, greatest(local_nonces_until, imported_nonces_until,
            (SELECT max(second) FROM nonces),
            (SELECT nullif(greatest(floor, lost), 0) FROM nonce_state)) AS accepted_until
        FROM meta",
    skip_locked: "FOR UPDATE SKIP LOCKED",
    wipe: "",
};
