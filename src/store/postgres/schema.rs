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
];

/// The schema that this program knows.
pub(super) const VERSION: i32 = 1;

const _: () = assert!(VERSION as usize == MIGRATIONS.len());
