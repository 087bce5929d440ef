//! The tables, and how an older database gets them.

/// The steps from an empty database to the newest schema; `meta.version` counts those taken. A step that was released
/// is never changed.
pub(super) const MIGRATIONS: &[&str] = &[
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
    -- `age` by the server's; `false`: there is none. Whoever inserts meanwhile waits, and sees the floor then.
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
    // What the consent page says of a consumer.
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
];

/// The schema that this program knows.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "there are few of them"
)]
pub(super) const VERSION: i32 = MIGRATIONS.len() as i32;
