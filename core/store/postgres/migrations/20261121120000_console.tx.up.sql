-- Ways to sign in besides the password: the subject of an OpenID Connect issuer, or a wallet (issuer eip155, subject its
-- address in lower case). They end with their account, so that the same person may begin anew.
CREATE TABLE identities (
    issuer     text NOT NULL CHECK (char_length(issuer) BETWEEN 1 AND 2048),
    subject    text NOT NULL CHECK (char_length(subject) BETWEEN 1 AND 255),
    account_id uuid NOT NULL REFERENCES accounts,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (issuer, subject),
    CONSTRAINT identities_wallet CHECK (issuer <> 'eip155' OR subject ~ '^0x[0-9a-f]{40}$')
);

CREATE INDEX identities_account ON identities (account_id);

-- Nonces of Sign-in with Ethereum, known by their SHA-256. Taking one removes it, so each is good once.
CREATE TABLE nonces (
    hash       bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    expires_at timestamptz NOT NULL
);

CREATE INDEX nonces_expiry ON nonces (expires_at);

-- A key that takes another's place spends the same bucket of the rate limit; the one it replaces works on until it
-- expires and is gone then.
ALTER TABLE api_keys ADD COLUMN limit_bucket uuid, ADD COLUMN rotated_at timestamptz;
UPDATE api_keys SET limit_bucket = id;
ALTER TABLE api_keys
    ALTER COLUMN limit_bucket SET NOT NULL,
    ADD CONSTRAINT api_keys_rotated CHECK (rotated_at IS NULL OR expires_at IS NOT NULL);

CREATE INDEX api_keys_rotated_expiry ON api_keys (expires_at) WHERE rotated_at IS NOT NULL AND deleted_at IS NULL;

-- A key that names no bucket has its own. The version before this one names none.
CREATE FUNCTION default_limit_bucket() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.limit_bucket := coalesce(NEW.limit_bucket, NEW.id);
    RETURN NEW;
END $$;

CREATE TRIGGER api_keys_limit_bucket
    BEFORE INSERT ON api_keys FOR EACH ROW EXECUTE FUNCTION default_limit_bucket();

CREATE OR REPLACE TRIGGER api_keys_changed
    AFTER INSERT OR DELETE OR UPDATE OF account_id, hash, environment, enabled, expires_at, deleted_at,
        limit_requests, limit_period_seconds, limit_bucket
    ON api_keys FOR EACH ROW EXECUTE FUNCTION note_key_change();

-- Who did what to an account and its keys, written in the transaction that does it. ids are UUIDv7, so their order is
-- that of time. There is no foreign key: what the rows name is never removed.
CREATE TABLE audit_log (
    id          uuid PRIMARY KEY,
    account_id  uuid NOT NULL,
    occurred_at timestamptz NOT NULL,
    actor       text NOT NULL CHECK (actor IN ('owner', 'operator')),
    action      text NOT NULL CHECK (action IN ('signed_up', 'signed_in', 'sessions_revoked', 'password_reset',
        'account_disabled', 'account_enabled', 'account_deleted',
        'key_created', 'key_updated', 'key_rotated', 'key_deleted')),
    key_id      uuid,
    key_name    text NOT NULL,
    detail      text NOT NULL,
    ip_address  text NOT NULL,
    user_agent  text NOT NULL,
    CONSTRAINT audit_log_key CHECK ((key_id IS NOT NULL) = (action LIKE 'key\_%'))
);

CREATE INDEX audit_log_account ON audit_log (account_id, id DESC);

CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE 'the audit log is only ever added to' USING ERRCODE = 'restrict_violation', CONSTRAINT = 'audit_log_append_only';
END $$;

CREATE TRIGGER audit_log_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

-- What was asked with each key, minute by minute. The account comes first, then the minute: pages of usage are read by
-- account since a moment.
CREATE TABLE key_usage (
    account_id uuid NOT NULL,
    minute     timestamptz NOT NULL CHECK (extract(epoch FROM minute) % 60 = 0),
    key_id     uuid NOT NULL,
    accepted   bigint NOT NULL CHECK (accepted >= 0),
    limited    bigint NOT NULL CHECK (limited >= 0),
    refused    bigint NOT NULL CHECK (refused >= 0),
    PRIMARY KEY (account_id, minute, key_id)
);

CREATE INDEX key_usage_age ON key_usage (minute);

-- The reports of usage that were stored, so that one that is sent again counts once.
CREATE TABLE usage_reports (
    id          uuid PRIMARY KEY,
    received_at timestamptz NOT NULL
);

CREATE INDEX usage_reports_age ON usage_reports (received_at);
