-- The tables of a store in SQLite; `postgres/schema.sql` has the same ones.
--
-- Times are seconds since 1970, lists are JSON, and secrets have the form that `seal.rs` gives them. A flag is an INT, every
-- other number an INTEGER.

-- Marks the file as ours: `CtS1`.
PRAGMA application_id = 0x43745331;

-- The random name of the store, by which an import knows an export of the same store.
CREATE TABLE meta (id TEXT NOT NULL) STRICT;
INSERT INTO meta (id) VALUES (lower(hex(randomblob(16))));

-- Times up to which something may have happened; none is ever lowered.
CREATE TABLE high_water_marks (name TEXT PRIMARY KEY NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- The version of the files of each local nonce window, by which a start knows an old copy of them.
CREATE TABLE nonce_files (id TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE consumers (
    key TEXT PRIMARY KEY NOT NULL,
    secret BLOB NOT NULL,
    previous_secret BLOB,
    previous_until INTEGER,
    rsa_public_key TEXT,
    rsa_only INT NOT NULL,
    accept TEXT NOT NULL,
    pinned TEXT NOT NULL,
    body_hash TEXT CHECK (body_hash IN ('optional', 'required')),
    "from" TEXT NOT NULL,
    rate TEXT,
    name TEXT NOT NULL,
    description TEXT,
    website TEXT,
    contact TEXT,
    callbacks TEXT NOT NULL,
    permissions TEXT NOT NULL,
    dialect TEXT CHECK (dialect IN ('rfc5849', 'legacy')),
    enforce INT NOT NULL,
    enabled INT NOT NULL,
    owner TEXT,
    registration TEXT CHECK (registration IN ('waiting', 'unchecked', 'approved', 'declined')),
    decision TEXT,
    asked_callbacks TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CHECK (registration NOT IN ('waiting', 'declined') OR enabled = 0),
    CHECK ((previous_secret IS NULL) = (previous_until IS NULL))
) STRICT;
-- The overview lists previous secrets that still verify.
CREATE INDEX consumers_in_grace ON consumers (previous_until) WHERE previous_until IS NOT NULL;
-- A user cannot take the name of another consumer.
CREATE INDEX consumers_by_name ON consumers (lower(name));
-- Each page of an owner lists their consumers, and operators list those that wait for a decision.
CREATE INDEX consumers_of_owner ON consumers (owner, key) WHERE owner IS NOT NULL;
CREATE INDEX consumers_to_decide ON consumers (created_at, key)
    WHERE registration = 'waiting' OR asked_callbacks <> '[]';
-- A start and a reload look for those with a permission that needs an approval now.
CREATE INDEX consumers_unchecked ON consumers (key) WHERE registration = 'unchecked';

-- The registrations by users in the last 24 hours, for their bounds: those of consumers that were removed since are among them.
CREATE TABLE registrations (
    consumer TEXT PRIMARY KEY NOT NULL,
    "user" TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX registrations_by_time ON registrations (at);

-- Keys of removed consumers, ids of removed users, and identifiers of access tokens that went with their consumer, or had
-- ended and could come back from elsewhere; never to be used again.
CREATE TABLE removed (
    kind TEXT NOT NULL CHECK (kind IN ('consumer', 'user', 'token')),
    key TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- The last verified call of each consumer, by its door; without method and dialect if it comes from an imported token.
CREATE TABLE consumer_uses (
    consumer TEXT NOT NULL REFERENCES consumers (key),
    door TEXT NOT NULL CHECK (door IN ('signature', 'bearer')),
    last_used_at INTEGER NOT NULL,
    method TEXT,
    dialect TEXT CHECK (dialect IN ('rfc5849', 'legacy')),
    PRIMARY KEY (consumer, door)
) STRICT, WITHOUT ROWID;

-- The link of each consumer by which its developer sees its rejected calls. Only the hash is kept, so that a reader of the store
-- opens none. The consumer may be one of an application.
CREATE TABLE developer_links (
    consumer TEXT PRIMARY KEY NOT NULL,
    id_hash BLOB NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX developer_links_by_end ON developer_links (expires_at);

CREATE TABLE users (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    display_name TEXT,
    password_hash BLOB,
    -- The cost of checking the hash, in clear: a login does the work of all costs.
    password_cost TEXT,
    -- The SHA-256 of the hash that a login has replaced by one of the same password.
    replaced_hash BLOB,
    -- An operator set the password, and the user has to choose another one.
    must_change_password INT NOT NULL,
    enabled INT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
-- Only ASCII letters have two cases here.
CREATE UNIQUE INDEX users_by_name ON users (lower(name));
CREATE INDEX users_by_password_cost ON users (password_cost) WHERE password_cost IS NOT NULL;

-- Tokens outlive their user, revoked, until upkeep removes what has ended.
CREATE TABLE access_tokens (
    token TEXT PRIMARY KEY NOT NULL,
    secret BLOB NOT NULL,
    consumer TEXT NOT NULL REFERENCES consumers (key),
    "user" TEXT NOT NULL,
    permissions TEXT NOT NULL,
    issued_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER,
    -- The address of the caller then.
    last_used_from TEXT,
    revoked_at INTEGER,
    began TEXT NOT NULL DEFAULT 'imported',
    -- The response that gave it out had the user's display name.
    with_display_name INT NOT NULL DEFAULT 0,
    -- The digest of the consumer as its user was shown it, where the consent counts for the next request too.
    shown TEXT
) STRICT;
CREATE INDEX access_tokens_of_consumer ON access_tokens (consumer, token);
CREATE INDEX access_tokens_of_user ON access_tokens ("user", token);
CREATE INDEX access_tokens_of_pair ON access_tokens ("user", consumer, token);
-- Upkeep removes tokens some time after their end.
CREATE INDEX access_tokens_by_end ON access_tokens (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX revoked_tokens_by_time ON access_tokens (revoked_at) WHERE revoked_at IS NOT NULL;
-- Lists begin with the access tokens that have been unused for longest, and leave out those that were revoked. No token
-- was issued before 1970. A query for the tokens of a user does not say so, and then uses the index by user: a user has few.
CREATE INDEX live_tokens_by_use ON access_tokens (coalesce(last_used_at, issued_at), token)
    WHERE revoked_at IS NULL AND issued_at >= 0;
CREATE INDEX live_tokens_of_consumer_by_use ON access_tokens (consumer, coalesce(last_used_at, issued_at), token)
    WHERE revoked_at IS NULL AND issued_at >= 0;
CREATE INDEX live_tokens_of_user_by_use ON access_tokens ("user", coalesce(last_used_at, issued_at), token)
    WHERE revoked_at IS NULL;

CREATE TABLE request_tokens (
    token TEXT PRIMARY KEY NOT NULL,
    secret BLOB NOT NULL,
    consumer TEXT NOT NULL REFERENCES consumers (key),
    callback TEXT, -- NULL: out of band
    permissions TEXT NOT NULL,
    issued_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('issued', 'authorized', 'denied', 'exchanged', 'voided')),
    "user" TEXT,
    verifier BLOB,
    redirect_token TEXT UNIQUE,
    -- As that of access tokens.
    shown TEXT,
    wrong_verifiers INTEGER NOT NULL,
    CHECK ((state = 'authorized') = ("user" IS NOT NULL)),
    CHECK ((state = 'authorized') = (verifier IS NOT NULL))
) STRICT;
CREATE INDEX request_tokens_of_consumer ON request_tokens (consumer);
CREATE INDEX request_tokens_of_user ON request_tokens ("user") WHERE "user" IS NOT NULL;
CREATE INDEX request_tokens_by_end ON request_tokens (expires_at);
-- Those that can still be exchanged are counted.
CREATE INDEX open_request_tokens ON request_tokens (consumer, expires_at)
    WHERE state IN ('issued', 'authorized');

CREATE TABLE sessions (
    id_hash BLOB PRIMARY KEY NOT NULL,
    "user" TEXT NOT NULL REFERENCES users (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- The address of the login.
    address TEXT NOT NULL,
    browser TEXT,
    system TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_of_user ON sessions ("user");
CREATE INDEX sessions_by_end ON sessions (expires_at);

-- What operators did. The record is JSON without secrets.
CREATE TABLE audit (
    -- The order of the acts.
    position INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    actor TEXT NOT NULL,
    consumer TEXT,
    "user" TEXT,
    record TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_of_consumer ON audit (consumer, position);
CREATE INDEX audit_of_user ON audit ("user", position);

-- The feed, in the order of commits and without gaps. Its first id is 2: to ask from 0 is to ask only for the newest id.
CREATE TABLE changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL
) STRICT;
CREATE INDEX changes_by_time ON changes (at);
INSERT INTO sqlite_sequence (name, seq) VALUES ('changes', 1);
