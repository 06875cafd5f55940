-- Accounts. A row is never removed, so what was done in an account's name can always be traced; ended accounts free
-- their e-mail address.
CREATE TABLE accounts (
    id            uuid PRIMARY KEY,
    name          text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 128),
    email         text NOT NULL CHECK (email = lower(email) AND char_length(email) <= 254),
    password_hash text NOT NULL,
    disabled_at   timestamptz,
    deleted_at    timestamptz,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL
);

CREATE UNIQUE INDEX accounts_email ON accounts (email) WHERE deleted_at IS NULL;

-- Browser sessions, known by the SHA-256 of their cookie.
CREATE TABLE sessions (
    id         uuid PRIMARY KEY,
    token_hash bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    account_id uuid NOT NULL REFERENCES accounts,
    ip_address text NOT NULL,
    user_agent text NOT NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE INDEX sessions_account ON sessions (account_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- API keys, known by the SHA-256 of the whole key. A deleted key keeps its row: intents name it.
CREATE TABLE api_keys (
    id                   uuid PRIMARY KEY,
    account_id           uuid NOT NULL REFERENCES accounts,
    name                 text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 64),
    hash                 bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    start                text NOT NULL CHECK (char_length(start) = 12),
    environment          text NOT NULL CHECK (environment IN ('test', 'live')),
    enabled              boolean NOT NULL,
    expires_at           timestamptz,
    last_used_at         timestamptz,
    limit_requests       integer NOT NULL CHECK (limit_requests > 0),
    limit_period_seconds integer NOT NULL CHECK (limit_period_seconds > 0),
    deleted_at           timestamptz,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    CHECK (start LIKE CASE environment WHEN 'test' THEN 'sk\_test\_%' ELSE 'sk\_live\_%' END)
);

CREATE INDEX api_keys_account ON api_keys (account_id, id) WHERE deleted_at IS NULL;

-- What gateways must forget. Triggers write it, so no code path and no operator at a prompt can revoke a key without
-- the gateways hearing of it. xid orders the rows by visibility: a serial number would lose transactions that commit
-- late.
CREATE TABLE key_changes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash       bytea NOT NULL,
    xid        xid8 NOT NULL DEFAULT pg_current_xact_id(),
    changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX key_changes_xid ON key_changes (xid);
CREATE INDEX key_changes_age ON key_changes (changed_at);

CREATE FUNCTION note_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('UPDATE', 'DELETE') THEN
        INSERT INTO key_changes (hash) VALUES (OLD.hash);
    END IF;
    IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE' AND NEW.hash <> OLD.hash) THEN
        INSERT INTO key_changes (hash) VALUES (NEW.hash);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER api_keys_changed
    AFTER INSERT OR DELETE OR UPDATE OF account_id, hash, environment, enabled, expires_at, deleted_at,
        limit_requests, limit_period_seconds
    ON api_keys FOR EACH ROW EXECUTE FUNCTION note_key_change();

CREATE FUNCTION note_account_keys_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO key_changes (hash) SELECT hash FROM api_keys WHERE account_id = NEW.id AND deleted_at IS NULL;
    RETURN NULL;
END $$;

CREATE TRIGGER accounts_changed
    AFTER UPDATE OF disabled_at, deleted_at
    ON accounts FOR EACH ROW EXECUTE FUNCTION note_account_keys_change();

-- The registry: chains and tokens, imported by operators.
CREATE TABLE chains (
    id                  text PRIMARY KEY CHECK (id ~ '^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$'),
    name                text NOT NULL,
    environment         text NOT NULL CHECK (environment IN ('test', 'live')),
    currency_name       text NOT NULL,
    currency_symbol     text NOT NULL,
    currency_decimals   smallint NOT NULL CHECK (currency_decimals BETWEEN 0 AND 255),
    domain              bigint NOT NULL CHECK (domain BETWEEN 0 AND 4294967295),
    settler_address     text,
    settler_same_chain  boolean NOT NULL DEFAULT false,
    created_at          timestamptz NOT NULL DEFAULT now(),
    updated_at          timestamptz NOT NULL DEFAULT now(),
    CHECK (settler_address IS NOT NULL OR NOT settler_same_chain)
);

CREATE TABLE tokens (
    chain_id   text NOT NULL REFERENCES chains,
    address    text NOT NULL,
    symbol     text NOT NULL,
    decimals   smallint NOT NULL CHECK (decimals BETWEEN 0 AND 255),
    metadata   text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (chain_id, address)
);

-- One row whose number grows with every change of the registry, so that each core notices by a look at one row.
CREATE TABLE registry_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version  bigint NOT NULL
);

INSERT INTO registry_version (version) VALUES (1);

CREATE FUNCTION bump_registry_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE registry_version SET version = version + 1;
    RETURN NULL;
END $$;

CREATE TRIGGER chains_changed
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON chains FOR EACH STATEMENT EXECUTE FUNCTION bump_registry_version();
CREATE TRIGGER tokens_changed
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON tokens FOR EACH STATEMENT EXECUTE FUNCTION bump_registry_version();

-- Transfer intents. There are no foreign keys: accounts, keys, chains and tokens are never removed, and checking them
-- would make every insert lock the rows that all inserts share.
--
-- Every index on what lists filter by begins with the account, the primary key included: an index on the id alone would
-- tempt the planner to walk all accounts' intents in search of one account's.
CREATE TABLE transfers (
    account_id          uuid NOT NULL,
    id                  uuid NOT NULL,
    key_id              uuid NOT NULL,
    type                text NOT NULL CHECK (type IN ('transfer', 'swap', 'bridge')),
    status              text NOT NULL CHECK (status IN
        ('created', 'submitted', 'confirmed', 'filled', 'refunded', 'failed', 'expired', 'cancelled')),
    order_id            bytea NOT NULL UNIQUE CHECK (octet_length(order_id) = 32),
    source_chain        text NOT NULL,
    source_account      text NOT NULL,
    source_token        text NOT NULL,
    source_amount       numeric(78, 0) NOT NULL CHECK (source_amount > 0 AND source_amount < 2::numeric ^ 256),
    destination_chain   text NOT NULL,
    destination_account text NOT NULL,
    destination_token   text NOT NULL,
    destination_amount  numeric(78, 0) NOT NULL CHECK (destination_amount > 0 AND destination_amount < 2::numeric ^ 256),
    origin_domain       bigint NOT NULL CHECK (origin_domain BETWEEN 0 AND 4294967295),
    destination_domain  bigint NOT NULL CHECK (destination_domain BETWEEN 0 AND 4294967295),
    origin_settler      text NOT NULL,
    destination_settler text NOT NULL,
    deadline            timestamptz NOT NULL,
    reference           text CHECK (char_length(reference) BETWEEN 1 AND 128),
    idempotency_key     text CHECK (char_length(idempotency_key) BETWEEN 1 AND 255),
    fingerprint         bytea CHECK (octet_length(fingerprint) = 32),
    hash                text,
    failure             text,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    CONSTRAINT transfers_fingerprinted CHECK ((idempotency_key IS NULL) = (fingerprint IS NULL)),
    CONSTRAINT transfers_bridge_crosses CHECK ((type = 'bridge') = (source_chain <> destination_chain)),
    CONSTRAINT transfers_transfer_keeps_token CHECK
        ((type = 'transfer') = (source_chain = destination_chain AND source_token = destination_token)),
    CONSTRAINT transfers_transfer_keeps_amount CHECK (type <> 'transfer' OR source_amount = destination_amount),
    CONSTRAINT transfers_settled CHECK ((type = 'transfer') = (origin_settler = '' AND destination_settler = '')),
    CONSTRAINT transfers_transfer_ends_confirmed CHECK (status NOT IN ('filled', 'refunded') OR type <> 'transfer'),
    CONSTRAINT transfers_failure CHECK ((failure IS NOT NULL) = (status = 'failed')),
    CONSTRAINT transfers_failure_code CHECK (failure IN ('TX_REVERTED', 'TX_REPLACED', 'TX_MISMATCH', 'ORDER_ID_MISMATCH')),
    CONSTRAINT transfers_sent CHECK
        (hash IS NOT NULL OR status NOT IN ('submitted', 'confirmed', 'filled', 'refunded', 'failed'))
);

-- Lists read newest first: ids are UUIDv7, so their order is that of time. Each filter has the index that gives its rows
-- in that order; a list narrowed by updated_at is in that order instead.
CREATE INDEX transfers_account_type ON transfers (account_id, type, id DESC);
CREATE INDEX transfers_account_status ON transfers (account_id, status, id DESC);
CREATE INDEX transfers_account_chain ON transfers (account_id, source_chain, id DESC);
CREATE INDEX transfers_account_updated ON transfers (account_id, updated_at DESC, id DESC);
CREATE INDEX transfers_account_reference ON transfers (account_id, reference, id DESC) WHERE reference IS NOT NULL;
CREATE INDEX transfers_account_hash ON transfers (account_id, hash, id DESC) WHERE hash IS NOT NULL;
CREATE UNIQUE INDEX transfers_idempotency ON transfers (account_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
-- What may expire, by when.
CREATE INDEX transfers_expiry ON transfers (deadline) WHERE status = 'created';

-- Every transition of every intent, written in the transition's own transaction. The CHECK is the state machine: a step
-- that it does not have cannot be recorded and so cannot happen. xid orders events by visibility, as in key_changes.
CREATE TABLE events (
    account_id  uuid NOT NULL,
    xid         xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id          bigint GENERATED ALWAYS AS IDENTITY,
    transfer_id uuid NOT NULL,
    from_status text,
    to_status   text NOT NULL,
    hash        text,
    failure     text,
    occurred_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, xid, id),
    CONSTRAINT events_step CHECK (coalesce(from_status, 'new') || ' > ' || to_status IN (
        'new > created',
        'created > submitted', 'submitted > submitted', 'failed > submitted', 'expired > submitted',
        'created > cancelled',
        'created > expired', 'submitted > expired',
        'submitted > confirmed', 'submitted > failed',
        'confirmed > filled', 'confirmed > refunded', 'confirmed > submitted')),
    CONSTRAINT events_failure CHECK ((failure IS NOT NULL) = (to_status = 'failed')),
    CONSTRAINT events_sent CHECK (hash IS NOT NULL OR to_status IN ('created', 'cancelled', 'expired'))
);

CREATE INDEX events_transfer ON events (transfer_id, id);
