-- The tables of a store in PostgreSQL: those of `sqlite/schema.sql`, the feed, and nonces that several machines share.
--
-- Times are seconds since 1970, lists are JSON, and secrets have the form that `seal.rs` gives them. Keys are compared by
-- their bytes.

-- The random name of the store, by which an import knows an export of the same store.
CREATE TABLE countersign.meta (id text COLLATE "C" NOT NULL, version bigint NOT NULL);
INSERT INTO countersign.meta (id, version) VALUES (md5(random()::text || clock_timestamp()::text), 0);

-- Times up to which something may have happened; none is ever lowered.
CREATE TABLE countersign.high_water_marks (name text COLLATE "C" PRIMARY KEY NOT NULL, until bigint NOT NULL);

-- The version of the files of each local nonce window, by which a start knows an old copy of them.
CREATE TABLE countersign.nonce_files (id text COLLATE "C" PRIMARY KEY NOT NULL, version bigint NOT NULL);

CREATE TABLE countersign.consumers (
    key text COLLATE "C" PRIMARY KEY NOT NULL,
    secret bytea NOT NULL,
    previous_secret bytea,
    previous_until bigint,
    rsa_public_key text COLLATE "C",
    rsa_only boolean NOT NULL,
    accept text COLLATE "C" NOT NULL,
    pinned text COLLATE "C" NOT NULL,
    body_hash text COLLATE "C" CHECK (body_hash IN ('optional', 'required')),
    "from" text COLLATE "C" NOT NULL,
    rate text COLLATE "C",
    name text COLLATE "C" NOT NULL,
    description text COLLATE "C",
    website text COLLATE "C",
    contact text COLLATE "C",
    callbacks text COLLATE "C" NOT NULL,
    permissions text COLLATE "C" NOT NULL,
    dialect text COLLATE "C" CHECK (dialect IN ('rfc5849', 'legacy')),
    enforce boolean NOT NULL,
    enabled boolean NOT NULL,
    owner text COLLATE "C",
    registration text COLLATE "C" CHECK (registration IN ('waiting', 'unchecked', 'approved', 'declined')),
    decision text COLLATE "C",
    asked_callbacks text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    CHECK (registration NOT IN ('waiting', 'declined') OR NOT enabled),
    CHECK ((previous_secret IS NULL) = (previous_until IS NULL))
);
-- The overview lists previous secrets that still verify.
CREATE INDEX consumers_in_grace ON countersign.consumers (previous_until) WHERE previous_until IS NOT NULL;
-- A user cannot take the name of another consumer.
CREATE INDEX consumers_by_name ON countersign.consumers (lower(name));
-- Each page of an owner lists their consumers, and operators list those that wait for a decision.
CREATE INDEX consumers_of_owner ON countersign.consumers (owner, key) WHERE owner IS NOT NULL;
CREATE INDEX consumers_to_decide ON countersign.consumers (created_at, key)
    WHERE registration = 'waiting' OR asked_callbacks <> '[]';
-- A start and a reload look for those with a permission that needs an approval now.
CREATE INDEX consumers_unchecked ON countersign.consumers (key) WHERE registration = 'unchecked';

-- The registrations by users in the last 24 hours, for their bounds: those of consumers that were removed since are among them.
CREATE TABLE countersign.registrations (
    consumer text COLLATE "C" PRIMARY KEY NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    at bigint NOT NULL
);
CREATE INDEX registrations_by_time ON countersign.registrations (at);

-- Keys of removed consumers, ids of removed users, and identifiers of access tokens that went with their consumer, or had
-- ended and could come back from elsewhere; never to be used again.
CREATE TABLE countersign.removed (
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('consumer', 'user', 'token')),
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, key)
);

-- The last verified call of each consumer, by its door; without method and dialect if it comes from an imported token.
CREATE TABLE countersign.consumer_uses (
    consumer text COLLATE "C" NOT NULL REFERENCES countersign.consumers (key),
    door text COLLATE "C" NOT NULL CHECK (door IN ('signature', 'bearer')),
    last_used_at bigint NOT NULL,
    method text COLLATE "C",
    dialect text COLLATE "C" CHECK (dialect IN ('rfc5849', 'legacy')),
    PRIMARY KEY (consumer, door)
);

-- The link of each consumer by which its developer sees its rejected calls. Only the hash is kept, so that a reader of the store
-- opens none. The consumer may be one of an application.
CREATE TABLE countersign.developer_links (
    consumer text COLLATE "C" PRIMARY KEY NOT NULL,
    id_hash bytea NOT NULL UNIQUE,
    expires_at bigint NOT NULL
);
CREATE INDEX developer_links_by_end ON countersign.developer_links (expires_at);

CREATE TABLE countersign.users (
    id text COLLATE "C" PRIMARY KEY NOT NULL,
    name text COLLATE "C" NOT NULL,
    display_name text COLLATE "C",
    password_hash bytea,
    -- The cost of checking the hash, in clear: a login does the work of all costs.
    password_cost text COLLATE "C",
    -- The SHA-256 of the hash that a login has replaced by one of the same password.
    replaced_hash bytea,
    -- An operator set the password, and the user has to choose another one.
    must_change_password boolean NOT NULL,
    enabled boolean NOT NULL,
    created_at bigint NOT NULL
);
-- Only ASCII letters have two cases here.
CREATE UNIQUE INDEX users_by_name ON countersign.users (lower(name));
CREATE INDEX users_by_password_cost ON countersign.users (password_cost) WHERE password_cost IS NOT NULL;

-- Tokens outlive their user, revoked, until upkeep removes what has ended.
CREATE TABLE countersign.access_tokens (
    token text COLLATE "C" PRIMARY KEY NOT NULL,
    secret bytea NOT NULL,
    consumer text COLLATE "C" NOT NULL REFERENCES countersign.consumers (key),
    "user" text COLLATE "C" NOT NULL,
    permissions text COLLATE "C" NOT NULL,
    issued_at bigint NOT NULL,
    expires_at bigint,
    last_used_at bigint,
    -- The address of the caller then.
    last_used_from text COLLATE "C",
    revoked_at bigint,
    began text COLLATE "C" NOT NULL DEFAULT 'imported',
    -- The response that gave it out had the user's display name.
    with_display_name boolean NOT NULL DEFAULT false,
    -- The digest of the consumer as its user was shown it, where the consent counts for the next request too.
    shown text COLLATE "C"
);
CREATE INDEX access_tokens_of_consumer ON countersign.access_tokens (consumer, token);
CREATE INDEX access_tokens_of_user ON countersign.access_tokens ("user", token);
CREATE INDEX access_tokens_of_pair ON countersign.access_tokens ("user", consumer, token);
-- Upkeep removes tokens some time after their end.
CREATE INDEX access_tokens_by_end ON countersign.access_tokens (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX revoked_tokens_by_time ON countersign.access_tokens (revoked_at) WHERE revoked_at IS NOT NULL;
-- Lists begin with the access tokens that have been unused for longest, and leave out those that were revoked. No token
-- was issued before 1970. A query for the tokens of a user does not say so, and then uses the index by user: a user has few.
CREATE INDEX live_tokens_by_use ON countersign.access_tokens (coalesce(last_used_at, issued_at), token)
    WHERE revoked_at IS NULL AND issued_at >= 0;
CREATE INDEX live_tokens_of_consumer_by_use ON countersign.access_tokens (consumer, coalesce(last_used_at, issued_at), token)
    WHERE revoked_at IS NULL AND issued_at >= 0;
CREATE INDEX live_tokens_of_user_by_use ON countersign.access_tokens ("user", coalesce(last_used_at, issued_at), token)
    WHERE revoked_at IS NULL;

CREATE TABLE countersign.request_tokens (
    token text COLLATE "C" PRIMARY KEY NOT NULL,
    secret bytea NOT NULL,
    consumer text COLLATE "C" NOT NULL REFERENCES countersign.consumers (key),
    callback text COLLATE "C", -- NULL: out of band
    permissions text COLLATE "C" NOT NULL,
    issued_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('issued', 'authorized', 'denied', 'exchanged', 'voided')),
    "user" text COLLATE "C",
    verifier bytea,
    redirect_token text COLLATE "C" UNIQUE,
    -- As that of access tokens.
    shown text COLLATE "C",
    wrong_verifiers bigint NOT NULL,
    CHECK ((state = 'authorized') = ("user" IS NOT NULL)),
    CHECK ((state = 'authorized') = (verifier IS NOT NULL))
);
CREATE INDEX request_tokens_of_consumer ON countersign.request_tokens (consumer);
CREATE INDEX request_tokens_of_user ON countersign.request_tokens ("user") WHERE "user" IS NOT NULL;
CREATE INDEX request_tokens_by_end ON countersign.request_tokens (expires_at);
-- Those that can still be exchanged are counted.
CREATE INDEX open_request_tokens ON countersign.request_tokens (consumer, expires_at)
    WHERE state IN ('issued', 'authorized');

CREATE TABLE countersign.sessions (
    id_hash bytea PRIMARY KEY NOT NULL,
    "user" text COLLATE "C" NOT NULL REFERENCES countersign.users (id),
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    -- The address of the login.
    address text COLLATE "C" NOT NULL,
    browser text COLLATE "C",
    system text COLLATE "C"
);
CREATE INDEX sessions_of_user ON countersign.sessions ("user");
CREATE INDEX sessions_by_end ON countersign.sessions (expires_at);

-- What operators did. The record is JSON without secrets.
CREATE TABLE countersign.audit (
    -- The order of the acts.
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    at bigint NOT NULL,
    event text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    consumer text COLLATE "C",
    "user" text COLLATE "C",
    record text COLLATE "C" NOT NULL
);
CREATE INDEX audit_by_time ON countersign.audit (at);
CREATE INDEX audit_of_consumer ON countersign.audit (consumer, position);
CREATE INDEX audit_of_user ON countersign.audit ("user", position);

-- The feed, in the order of commits and without gaps. Its first id is 2: to ask from 0 is to ask only for the newest id.
CREATE TABLE countersign.changes (
    id bigint PRIMARY KEY,
    at bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL
);
CREATE INDEX changes_by_time ON countersign.changes (at);

-- The functions of SQLite that statements use.
CREATE FUNCTION countersign.unixepoch() RETURNS bigint LANGUAGE sql AS
    $$ SELECT extract(epoch FROM clock_timestamp())::bigint $$;
CREATE FUNCTION countersign.unhex(digits text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT decode(digits, 'hex') $$;
CREATE FUNCTION countersign.json_each(list text) RETURNS TABLE (value json) LANGUAGE sql IMMUTABLE AS
    $$ SELECT json_array_elements(list::json) $$;

-- `feed` has the newest id of `changes`.
CREATE TABLE countersign.feed (position bigint NOT NULL);
INSERT INTO countersign.feed (position) VALUES (1);

-- Shared nonces. A partition, `nonces_` and its number, holds the timestamps of as many seconds as its functions are given.
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
-- does not wait for transactions on the others.
CREATE FUNCTION countersign.make_nonce_slot(slot bigint, seconds bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_tables WHERE schemaname = 'countersign' AND tablename = 'nonces_' || slot) THEN
        RETURN;
    END IF;
    PERFORM set_config('lock_timeout', '200', true);
    LOCK TABLE countersign.nonce_state IN SHARE UPDATE EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM pg_tables WHERE schemaname = 'countersign' AND tablename = 'nonces_' || slot)
        OR (slot + 1) * seconds - 1 <= (SELECT floor FROM countersign.nonce_state) THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE countersign.nonces_%s (LIKE countersign.nonces INCLUDING ALL)', slot);
    EXECUTE format('ALTER TABLE countersign.nonces ATTACH PARTITION countersign.nonces_%s
        FOR VALUES FROM (%s) TO (%s)', slot, slot * seconds, (slot + 1) * seconds);
END
$$;

-- Drops the oldest partition if all of it is before `old` by the clock of the caller, and older than
-- `age` by the server's; `false`: there is none. An insertion meanwhile waits, and then sees the floor.
CREATE FUNCTION countersign.drop_nonce_slot(old bigint, age bigint, seconds bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    oldest bigint;
BEGIN
    PERFORM set_config('lock_timeout', '100', true);
    LOCK TABLE countersign.nonce_state IN SHARE UPDATE EXCLUSIVE MODE;
    SELECT min(substr(tablename, 8)::bigint) INTO oldest FROM pg_tables
        WHERE schemaname = 'countersign' AND tablename ~ '^nonces_[0-9]+$';
    IF oldest IS NULL OR (oldest + 1) * seconds > least(old, extract(epoch FROM clock_timestamp())::bigint - age) THEN
        RETURN false;
    END IF;
    LOCK TABLE countersign.nonces IN ACCESS EXCLUSIVE MODE;
    UPDATE countersign.nonce_state SET floor = greatest(floor, (oldest + 1) * seconds - 1);
    EXECUTE format('DROP TABLE countersign.nonces_%s', oldest);
    RETURN true;
END
$$;
