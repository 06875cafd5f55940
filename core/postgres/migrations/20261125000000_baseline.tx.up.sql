-- The schema of release 0.1.0. Later releases add migrations and leave this one as it is; README.md beside the stores describes each table.

-- Accounts.

-- Accounts. A row is never removed, so what was done in an account's name can always be traced; ended accounts free their e-mail
-- address. A shared account belongs to its members alone: nobody signs in to it.
CREATE TABLE accounts (
    id                    uuid PRIMARY KEY,
    name                  text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 128),
    email                 text NOT NULL CHECK (email = lower(email) AND char_length(email) <= 254),
    password_hash         text NOT NULL,
    disabled_at           timestamptz,
    deleted_at            timestamptz,
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    -- When the personal data of an ended account was erased.
    erased_at             timestamptz,
    -- When the owner proved to receive mail at the address, and whether they must before they sign in.
    email_verified_at     timestamptz,
    verification_required boolean NOT NULL DEFAULT false,
    shared                boolean NOT NULL DEFAULT false,
    -- The limit of all keys of an account in one environment together, where an operator set one; NULL for the default.
    limit_requests        integer,
    limit_period_seconds  integer,
    CONSTRAINT accounts_erased CHECK (erased_at IS NULL OR deleted_at IS NOT NULL),
    CONSTRAINT accounts_shared CHECK (NOT shared OR password_hash = ''),
    CONSTRAINT accounts_limit CHECK ((limit_requests IS NULL) = (limit_period_seconds IS NULL)
        AND limit_requests > 0 AND limit_period_seconds > 0)
);

CREATE UNIQUE INDEX accounts_email ON accounts (email) WHERE deleted_at IS NULL;
-- Sign-ups whose address nobody has verified, by age: those that nobody has entered are removed.
CREATE INDEX accounts_unconfirmed ON accounts (created_at)
    WHERE verification_required AND email_verified_at IS NULL AND deleted_at IS NULL;

-- Browser sessions, known by the SHA-256 of their cookie. acting_account_id is the account that a session acts on, NULL for the one
-- that signed in.
CREATE TABLE sessions (
    id                uuid PRIMARY KEY,
    token_hash        bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    account_id        uuid NOT NULL REFERENCES accounts,
    ip_address        text NOT NULL,
    user_agent        text NOT NULL,
    expires_at        timestamptz NOT NULL,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    acting_account_id uuid
);

CREATE INDEX sessions_account ON sessions (account_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_acting ON sessions (acting_account_id) WHERE acting_account_id IS NOT NULL;

-- Ways to sign in besides the password: the subject of an OpenID Connect issuer; a wallet (issuer eip155); or a smart account of a
-- chain (issuer its CAIP-2 id, such as eip155:1). Addresses are in lower case. They end with their account, so that the same person
-- may begin again.
CREATE TABLE identities (
    issuer     text NOT NULL CHECK (char_length(issuer) BETWEEN 1 AND 2048),
    subject    text NOT NULL CHECK (char_length(subject) BETWEEN 1 AND 255),
    account_id uuid NOT NULL REFERENCES accounts,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (issuer, subject),
    CONSTRAINT identities_wallet CHECK (issuer <> 'eip155' OR subject ~ '^0x[0-9a-f]{40}$'),
    CONSTRAINT identities_smart_account CHECK
        (issuer NOT LIKE 'eip155:%' OR issuer ~ '^eip155:[1-9][0-9]{0,15}$' AND subject ~ '^0x[0-9a-f]{40}$')
);

CREATE INDEX identities_account ON identities (account_id);

-- Nonces of Sign-in with Ethereum, known by their SHA-256. Taking one removes it, so each is good once.
CREATE TABLE nonces (
    hash       bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    expires_at timestamptz NOT NULL
);

CREATE INDEX nonces_expiry ON nonces (expires_at);

-- Tokens of links to a new password, known by their SHA-256. A use removes all of the account, so each is good once. email is the
-- address that the link was mailed to, NULL for a link that an operator made.
CREATE TABLE reset_tokens (
    hash       bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    account_id uuid NOT NULL REFERENCES accounts,
    expires_at timestamptz NOT NULL,
    email      text
);

CREATE INDEX reset_tokens_account ON reset_tokens (account_id);
CREATE INDEX reset_tokens_expiry ON reset_tokens (expires_at);

-- Tokens of links that prove an address, known by their SHA-256, for one use. email is the address of the account when the link was
-- made; the token is void once the account has another. new_email is the address that the account is to get. name and password_hash
-- are those of a sign-up that waits for its link: whichever link is opened decides which of them the account gets.
CREATE TABLE link_tokens (
    hash          bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    purpose       text NOT NULL CHECK (purpose IN ('verify_email', 'confirm_email_change', 'change_email')),
    account_id    uuid NOT NULL REFERENCES accounts,
    email         text NOT NULL CHECK (char_length(email) <= 254),
    new_email     text CHECK (char_length(new_email) <= 254),
    expires_at    timestamptz NOT NULL,
    name          text,
    password_hash text,
    CONSTRAINT link_tokens_new_email CHECK ((purpose = 'verify_email') = (new_email IS NULL))
);

CREATE INDEX link_tokens_account ON link_tokens (account_id);
CREATE INDEX link_tokens_expiry ON link_tokens (expires_at);

-- Mails that are to be sent. A row names what the mail is about and whom it goes to; its text is written when it is sent, so that no
-- link is stored. It is due at next_attempt_at, which its sender moves ahead first, and is deleted once the mail is sent or given up.
CREATE TABLE mails (
    id              uuid PRIMARY KEY,
    kind            text NOT NULL,
    recipient       text NOT NULL CHECK (char_length(recipient) <= 254),
    attempts        integer NOT NULL CHECK (attempts >= 0),
    next_attempt_at timestamptz NOT NULL,
    created_at      timestamptz NOT NULL,
    -- The account that asked for the mail, the address that it is to get, and the path where the link leads.
    account_id      uuid,
    new_email       text,
    callback        text,
    -- What the mail is about: an invitation, a webhook, or an entry of the audit log.
    invitation_id   uuid,
    webhook_id      uuid,
    -- Those of the link's token.
    name            text,
    password_hash   text,
    audit_entry_id  uuid
);

CREATE INDEX mails_due ON mails (next_attempt_at);
CREATE INDEX mails_age ON mails (created_at);
CREATE INDEX mails_recipient ON mails (recipient);

-- Who may act on an account. A person is the account that they signed up with, of which they stay an owner: its holder.
CREATE TABLE members (
    account_id uuid NOT NULL REFERENCES accounts,
    person_id  uuid NOT NULL REFERENCES accounts,
    role       text NOT NULL CHECK (role IN ('owner', 'developer', 'viewer')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, person_id),
    CONSTRAINT members_holder CHECK (account_id <> person_id OR role = 'owner')
);

CREATE INDEX members_person ON members (person_id);

-- Invitations that wait for an answer. The token of the link is known by its SHA-256; a link that is mailed gets it when the mail is
-- written.
CREATE TABLE invitations (
    id         uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts,
    inviter_id uuid NOT NULL REFERENCES accounts,
    email      text NOT NULL CHECK (email = lower(email) AND char_length(email) <= 254),
    role       text NOT NULL CHECK (role IN ('owner', 'developer', 'viewer')),
    token_hash bytea UNIQUE CHECK (octet_length(token_hash) = 32),
    mailed     boolean NOT NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT invitations_once UNIQUE (account_id, email)
);

CREATE INDEX invitations_email ON invitations (email);
CREATE INDEX invitations_inviter ON invitations (inviter_id);
CREATE INDEX invitations_expiry ON invitations (expires_at);

-- A new account has its holder, and an ended one neither members nor memberships, whoever writes it.
CREATE FUNCTION add_holder() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO members (account_id, person_id, role, created_at) VALUES (NEW.id, NEW.id, 'owner', NEW.created_at);
    RETURN NULL;
END $$;

CREATE TRIGGER accounts_holder
    AFTER INSERT ON accounts FOR EACH ROW WHEN (NOT NEW.shared AND NEW.deleted_at IS NULL) EXECUTE FUNCTION add_holder();

CREATE FUNCTION end_memberships() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM members WHERE account_id = NEW.id OR person_id = NEW.id;
    DELETE FROM invitations WHERE account_id = NEW.id OR inviter_id = NEW.id;
    RETURN NULL;
END $$;

CREATE TRIGGER accounts_ended
    AFTER UPDATE OF deleted_at ON accounts FOR EACH ROW WHEN (NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION end_memberships();

-- Who did what to an account, its keys and its webhooks, written in the transaction that does it. ids are UUIDv7, so their order is
-- that of time. There is no foreign key: what the rows name is never removed. person_id is the member who acted, NULL for the holder.
-- repeats is how often more the same was done in the hour of the entry.
CREATE TABLE audit_log (
    id          uuid PRIMARY KEY,
    account_id  uuid NOT NULL,
    occurred_at timestamptz NOT NULL,
    actor       text NOT NULL CHECK (actor IN ('owner', 'operator')),
    action      text NOT NULL CHECK (action IN (
        'signed_up', 'signed_in', 'sign_in_failed', 'signed_out', 'sessions_revoked', 'reset_requested', 'account_switched',
        'password_changed', 'password_reset', 'reset_link_made', 'email_verified', 'email_change_requested', 'email_changed',
        'email_lost', 'identity_linked', 'identity_unlinked', 'account_shared', 'account_renamed', 'member_invited',
        'invitation_canceled', 'invitation_declined', 'member_joined', 'member_changed', 'member_removed', 'member_left',
        'account_limit_changed', 'account_disabled', 'account_enabled', 'account_deleted', 'key_created', 'key_updated',
        'key_rotated', 'key_deleted', 'webhook_created', 'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted',
        'webhook_replayed')),
    key_id      uuid,
    key_name    text NOT NULL,
    detail      text NOT NULL,
    ip_address  text NOT NULL,
    user_agent  text NOT NULL,
    person_id   uuid,
    repeats     integer NOT NULL DEFAULT 0,
    CONSTRAINT audit_log_key CHECK
        (CASE WHEN action LIKE 'key\_%' THEN key_id IS NOT NULL ELSE key_id IS NULL OR action LIKE 'webhook\_%' END)
);

CREATE INDEX audit_log_account ON audit_log (account_id, id DESC);
-- What a member did in the accounts of others, to erase it.
CREATE INDEX audit_log_person ON audit_log (person_id) WHERE person_id IS NOT NULL;

-- The audit log is only ever added to. The rows themselves decide the exceptions: an entry older than 30 days may go, one of an ended
-- account or person may lose what tells of a person, and a repeated entry is counted.
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.occurred_at < now() - interval '30 days' THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND (NEW.id, NEW.account_id, NEW.occurred_at, NEW.actor, NEW.action) = (OLD.id, OLD.account_id, OLD.occurred_at, OLD.actor, OLD.action)
        AND NEW.key_id IS NOT DISTINCT FROM OLD.key_id AND NEW.person_id IS NOT DISTINCT FROM OLD.person_id
        AND (NEW.key_name, NEW.detail, NEW.ip_address, NEW.user_agent) = ('', '', '', '')
        AND EXISTS (SELECT FROM accounts WHERE accounts.id = OLD.account_id AND deleted_at IS NOT NULL) THEN
        RETURN NEW;
    END IF;
    -- An ended person's address and browser go from the logs of other accounts; what was done stays.
    IF TG_OP = 'UPDATE' AND to_jsonb(NEW) - '{ip_address,user_agent}'::text[] = to_jsonb(OLD) - '{ip_address,user_agent}'::text[]
        AND (NEW.ip_address, NEW.user_agent) = ('', '')
        AND EXISTS (SELECT FROM accounts WHERE accounts.id = OLD.person_id AND deleted_at IS NOT NULL) THEN
        RETURN NEW;
    END IF;
    -- What is recorded once an hour is counted, and nothing else of it changes.
    IF TG_OP = 'UPDATE' AND OLD.action IN ('sign_in_failed', 'signed_out', 'reset_requested', 'account_switched')
        AND NEW.repeats > OLD.repeats AND to_jsonb(NEW) - 'repeats' = to_jsonb(OLD) - 'repeats' THEN
        RETURN NEW;
    END IF;
    RAISE 'the audit log is only ever added to' USING ERRCODE = 'restrict_violation', CONSTRAINT = 'audit_log_append_only';
END $$;

CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

-- Keys.

-- API keys, known by the SHA-256 of the whole key. A deleted key keeps its row: intents name it. A key that takes another's place
-- spends the same bucket of the rate limit; the one that it replaces, rotated_at, works until it expires and is gone then. networks are
-- those that a key may be used from, none for any.
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
    limit_bucket         uuid NOT NULL,
    rotated_at           timestamptz,
    scopes               text[] NOT NULL,
    networks             cidr[] NOT NULL,
    CHECK (start LIKE CASE environment WHEN 'test' THEN 'sk\_test\_%' ELSE 'sk\_live\_%' END),
    CONSTRAINT api_keys_rotated CHECK (rotated_at IS NULL OR expires_at IS NOT NULL),
    CONSTRAINT api_keys_scopes CHECK (cardinality(scopes) > 0 AND scopes <@ '{intents:read,intents:write,webhooks}'::text[]),
    CONSTRAINT api_keys_networks CHECK (cardinality(networks) <= 32 AND array_position(networks, NULL) IS NULL)
);

CREATE INDEX api_keys_account ON api_keys (account_id, id) WHERE deleted_at IS NULL;
CREATE INDEX api_keys_rotated_expiry ON api_keys (expires_at) WHERE rotated_at IS NOT NULL AND deleted_at IS NULL;

-- What gateways must forget. Triggers write it, so no code path and no operator at a prompt can revoke a key without the gateways
-- hearing of it. xid orders the rows by visibility: a serial number would lose transactions that commit late.
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
        limit_requests, limit_period_seconds, limit_bucket, scopes, networks
    ON api_keys FOR EACH ROW EXECUTE FUNCTION note_key_change();

CREATE FUNCTION note_account_keys_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO key_changes (hash) SELECT hash FROM api_keys WHERE account_id = NEW.id AND deleted_at IS NULL;
    RETURN NULL;
END $$;

CREATE TRIGGER accounts_changed
    AFTER UPDATE OF disabled_at, deleted_at, limit_requests, limit_period_seconds
    ON accounts FOR EACH ROW EXECUTE FUNCTION note_account_keys_change();

-- How many requests were made with each key, minute by minute. The account comes first, then the minute: pages of usage are read by
-- account from a time on.
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
CREATE INDEX key_usage_key ON key_usage (account_id, key_id, minute);

-- The reports of usage that were stored, so that one that is sent again counts once.
CREATE TABLE usage_reports (
    id          uuid PRIMARY KEY,
    received_at timestamptz NOT NULL
);

CREATE INDEX usage_reports_age ON usage_reports (received_at);

-- The registry, which operators import.

-- Chains. When a block counts as permanent (confirmations, finality), how often there is a new one, and how the settler's orders are
-- encoded. rpc_urls are public JSON-RPC URLs, which wallets get to add the chain (EIP-3085). The defaults are those of core/intent/chain.
CREATE TABLE chains (
    id                 text PRIMARY KEY CHECK (id ~ '^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$'),
    name               text NOT NULL,
    environment        text NOT NULL CHECK (environment IN ('test', 'live')),
    currency_name      text NOT NULL,
    currency_symbol    text NOT NULL,
    currency_decimals  smallint NOT NULL CHECK (currency_decimals BETWEEN 0 AND 255),
    domain             bigint NOT NULL CHECK (domain BETWEEN 0 AND 4294967295),
    settler_address    text,
    settler_same_chain boolean NOT NULL DEFAULT false,
    created_at         timestamptz NOT NULL DEFAULT now(),
    updated_at         timestamptz NOT NULL DEFAULT now(),
    confirmations      integer NOT NULL DEFAULT 12 CHECK (confirmations BETWEEN 1 AND 10000),
    finality           text NOT NULL DEFAULT 'depth' CHECK (finality IN ('depth', 'safe', 'finalized')),
    block_time_ms      integer NOT NULL DEFAULT 12000 CHECK (block_time_ms BETWEEN 50 AND 600000),
    settler_scheme     text NOT NULL DEFAULT 'erc7683-v1/OrderData' CHECK (settler_scheme = 'erc7683-v1/OrderData'),
    rpc_urls           text[] CHECK (cardinality(rpc_urls) BETWEEN 1 AND 8 AND array_position(rpc_urls, NULL) IS NULL
        AND octet_length(array_to_string(rpc_urls, '')) <= 2048),
    CHECK (settler_address IS NOT NULL OR NOT settler_same_chain)
);

-- Tokens. Where a definition was published and its licence as an SPDX expression; NULL where that is not recorded.
CREATE TABLE tokens (
    chain_id   text NOT NULL REFERENCES chains,
    address    text NOT NULL,
    symbol     text NOT NULL,
    decimals   smallint NOT NULL CHECK (decimals BETWEEN 0 AND 255),
    metadata   text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    source     text,
    license    text,
    PRIMARY KEY (chain_id, address)
);

-- One row whose number grows with every change of the registry, so that each core notices by reading one row.
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

-- Every settler that a chain ever had: orders that were opened at an old one are followed to their end.
CREATE TABLE chain_settlers (
    chain_id text NOT NULL,
    address  text NOT NULL,
    PRIMARY KEY (chain_id, address)
);

CREATE FUNCTION keep_chain_settler() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.settler_address IS NOT NULL THEN
        INSERT INTO chain_settlers VALUES (NEW.id, NEW.settler_address) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER chains_settler AFTER INSERT OR UPDATE OF settler_address ON chains FOR EACH ROW EXECUTE FUNCTION keep_chain_settler();

-- Intents.

-- Transfer intents. environment is that of the source chain. There are no foreign keys: accounts, keys, chains and tokens are never
-- removed, and checking them would make every insert lock the rows that all inserts share.
--
-- Every index on what lists filter by begins with the account, the primary key included: an index on the id alone would tempt the
-- planner to walk all accounts' intents in search of one account's.
CREATE TABLE transfers (
    account_id          uuid NOT NULL,
    id                  uuid NOT NULL,
    key_id              uuid NOT NULL,
    environment         text NOT NULL CHECK (environment IN ('test', 'live')),
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
    order_scheme        text NOT NULL,
    deadline            timestamptz NOT NULL,
    reference           text CHECK (char_length(reference) BETWEEN 1 AND 128),
    idempotency_key     text CHECK (char_length(idempotency_key) BETWEEN 1 AND 255),
    hash                text,
    failure             text,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    -- A cancelled intent whose transaction is seen on chain has another status and still was cancelled.
    cancelled_at        timestamptz,
    -- When the event of an order that can be refunded was written, NULL while it was not or the intent has moved on.
    refundable_at       timestamptz,
    PRIMARY KEY (account_id, id),
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

-- Lists are read newest first: ids are UUIDv7, so their order is that of time. Each filter has the index that gives its rows in that
-- order; a list narrowed by updated_at is in that order instead.
CREATE INDEX transfers_account_type ON transfers (account_id, type, id DESC);
CREATE INDEX transfers_account_status ON transfers (account_id, status, id DESC);
CREATE INDEX transfers_account_chain ON transfers (account_id, source_chain, id DESC);
CREATE INDEX transfers_account_updated ON transfers (account_id, updated_at DESC, id DESC);
CREATE INDEX transfers_account_reference ON transfers (account_id, reference, id DESC) WHERE reference IS NOT NULL;
CREATE INDEX transfers_account_hash ON transfers (account_id, hash, id DESC) WHERE hash IS NOT NULL;
CREATE UNIQUE INDEX transfers_idempotency ON transfers (account_id, environment, idempotency_key) WHERE idempotency_key IS NOT NULL;
-- Intents that may expire, by deadline.
CREATE INDEX transfers_expiry ON transfers (deadline) WHERE status = 'created';
-- Open orders of which no event says that they can be refunded, by destination chain and deadline: those of a chain that is not read
-- past their deadlines are not looked at.
CREATE INDEX transfers_refundable_destination ON transfers (destination_chain, deadline)
    WHERE status = 'confirmed' AND type <> 'transfer' AND refundable_at IS NULL;

-- Every transition of every intent, with what caused it and the transaction that the chain showed, written in the transition's own
-- transaction; transfer.Apply has the table of steps. xid orders events by visibility, as in key_changes. sequence is an event's place
-- among its intent's events, from 1.
CREATE TABLE events (
    account_id   uuid NOT NULL,
    xid          xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id           bigint GENERATED ALWAYS AS IDENTITY,
    transfer_id  uuid NOT NULL,
    from_status  text,
    to_status    text NOT NULL,
    hash         text,
    failure      text,
    occurred_at  timestamptz NOT NULL,
    trigger      text,
    chain_id     text,
    tx_hash      bytea,
    block_number bigint,
    sequence     integer NOT NULL CHECK (sequence > 0),
    PRIMARY KEY (account_id, xid, id),
    CONSTRAINT events_failure CHECK ((failure IS NOT NULL) = (to_status = 'failed')),
    CONSTRAINT events_sent CHECK (hash IS NOT NULL OR to_status IN ('created', 'cancelled', 'expired'))
);

CREATE INDEX events_transfer ON events (transfer_id, id);
-- The events without a position in the order of their ids, and the event of a row of the feed.
CREATE INDEX events_id ON events (id);

-- What is seen on the chains.

-- The transactions of intents as they were last seen on chain: the attempts that clients report, and what settlers' events tell.
CREATE TABLE transactions (
    account_id    uuid NOT NULL,
    transfer_id   uuid NOT NULL,
    chain_id      text NOT NULL,
    hash          bytea NOT NULL CHECK (octet_length(hash) = 32),
    role          text NOT NULL CHECK (role IN ('send', 'open', 'fill', 'settle', 'refund')),
    state         text NOT NULL CHECK (state IN
        ('pending', 'mined', 'reverted', 'replaced', 'mismatch', 'order_mismatch', 'unsupported', 'dropped')),
    reported      boolean NOT NULL,
    block_number  bigint CHECK (block_number >= 0),
    block_hash    bytea CHECK (octet_length(block_hash) = 32),
    log_index     bigint CHECK (log_index >= -1),
    confirmed_at  timestamptz,
    sender        bytea CHECK (octet_length(sender) = 20),
    nonce         numeric(20, 0) CHECK (nonce >= 0 AND nonce < 2::numeric ^ 64),
    seen_at       timestamptz NOT NULL,
    due_at        timestamptz,
    unknown_since timestamptz,
    PRIMARY KEY (account_id, transfer_id, chain_id, hash, role),
    CONSTRAINT transactions_block CHECK ((block_number IS NULL) = (block_hash IS NULL)),
    CONSTRAINT transactions_in_block CHECK
        ((block_number IS NULL) = (state IN ('pending', 'replaced', 'dropped'))),
    CONSTRAINT transactions_effect_log CHECK ((log_index IS NULL) = (state <> 'mined')),
    CONSTRAINT transactions_sender CHECK ((sender IS NULL) = (nonce IS NULL)),
    CONSTRAINT transactions_pending_reported CHECK (reported OR state <> 'pending')
);

-- Within an account one payment confirms one intent. Another account may name the same public transaction.
CREATE UNIQUE INDEX transactions_effect ON transactions (account_id, chain_id, hash, role, log_index) WHERE log_index IS NOT NULL;
-- What a reorganization of a chain touches.
CREATE INDEX transactions_mined ON transactions (chain_id, block_number) WHERE block_number IS NOT NULL;
-- What becomes deep enough next.
CREATE INDEX transactions_unconfirmed ON transactions (chain_id, block_number) WHERE block_number IS NOT NULL AND confirmed_at IS NULL;
-- Attempts by when they are looked up next, those of an account by the same (accounts take turns), those that no provider has ever
-- shown, and the hashes that are looked for in new blocks.
CREATE INDEX transactions_due ON transactions (chain_id, due_at) WHERE state IN ('pending', 'dropped') AND due_at IS NOT NULL;
CREATE INDEX transactions_queue ON transactions (chain_id, account_id, due_at) WHERE state IN ('pending', 'dropped') AND due_at IS NOT NULL;
CREATE INDEX transactions_unknown ON transactions (chain_id, account_id)
    WHERE sender IS NULL AND state IN ('pending', 'dropped') AND due_at IS NOT NULL;
CREATE INDEX transactions_pending ON transactions (chain_id, hash) WHERE state IN ('pending', 'dropped') AND due_at IS NOT NULL;
-- Open orders by when they are compared with the settler next.
CREATE INDEX transactions_orders ON transactions (chain_id, due_at) WHERE state = 'mined' AND due_at IS NOT NULL;

-- Transactions that are deep enough and that other providers do not show the same: since when, and when they are compared next.
CREATE TABLE disputed_transactions (
    account_id     uuid NOT NULL,
    transfer_id    uuid NOT NULL,
    chain_id       text NOT NULL,
    hash           bytea NOT NULL,
    role           text NOT NULL,
    block_hash     bytea NOT NULL,
    disputed_since timestamptz NOT NULL,
    compare_at     timestamptz NOT NULL,
    PRIMARY KEY (account_id, transfer_id, chain_id, hash, role)
);

CREATE INDEX disputed_transactions_compare ON disputed_transactions (compare_at);

-- How far each chain has been read, and who reads it. A write of the watcher is valid only in its own epoch. read_block is the newest
-- block whose events have been read since the last reorganization, complete_until the time up to which each block was read twice.
CREATE TABLE watched_chains (
    chain_id        text PRIMARY KEY,
    holder          text NOT NULL,
    epoch           bigint NOT NULL,
    lease_until     timestamptz NOT NULL,
    head_number     bigint,
    confirmed_block bigint,
    final_block     bigint,
    cursor_block    bigint,
    stopped         text,
    read_at         timestamptz,
    read_block      bigint,
    read_block_time timestamptz,
    complete_until  timestamptz,
    CONSTRAINT watched_chains_read CHECK (
        (head_number IS NULL) = (confirmed_block IS NULL) AND (head_number IS NULL) = (final_block IS NULL)
        AND (head_number IS NULL) = (read_at IS NULL))
);

-- Blocks whose hashes are known: where a chain agrees with one of them, everything below it is as it was read.
CREATE TABLE chain_anchors (
    chain_id text NOT NULL,
    number   bigint NOT NULL CHECK (number >= 0),
    hash     bytea NOT NULL CHECK (octet_length(hash) = 32),
    PRIMARY KEY (chain_id, number)
);

-- Until when intents are expected to touch a chain. It is a table of its own, so that a POST never waits for the watcher.
CREATE TABLE chain_activity (
    chain_id     text PRIMARY KEY,
    active_until timestamptz NOT NULL
);

-- Events and webhooks.

-- The events of all accounts in the order in which they are read. A row leads to the event of an intent, or has the data itself.
CREATE TABLE feed (
    position    bigint PRIMARY KEY,
    account_id  uuid NOT NULL,
    environment text NOT NULL CHECK (environment IN ('test', 'live')),
    type        text NOT NULL,
    event_id    bigint,
    sequence    integer CHECK (sequence > 0),
    occurred_at timestamptz NOT NULL,
    data        json,
    id          uuid NOT NULL DEFAULT gen_random_uuid(),
    CONSTRAINT feed_source CHECK ((event_id IS NULL) = (data IS NOT NULL) AND (event_id IS NULL) = (sequence IS NULL))
);

CREATE INDEX feed_account ON feed (account_id, environment, position);

-- One row, whose lock gives the right to assign positions. unread are the ids of events that have no position and may still appear.
-- Every transaction that can write an event up to checked_id has an id below checked_xid, in that cluster.
CREATE TABLE feed_state (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    last_position bigint NOT NULL DEFAULT 0,
    unread        int8multirange NOT NULL DEFAULT '{[1,)}',
    checked_id    bigint,
    checked_xid   xid8,
    cluster       text,
    CONSTRAINT feed_state_checked CHECK ((checked_id IS NULL) = (checked_xid IS NULL) AND (checked_id IS NULL) = (cluster IS NULL))
);

INSERT INTO feed_state DEFAULT VALUES;

-- The newest position of each owner's feed that was removed: a cursor before it has missed events. A trigger writes it, so that it is
-- true whoever removes rows.
CREATE TABLE feed_pruned (
    account_id  uuid NOT NULL,
    environment text NOT NULL,
    position    bigint NOT NULL,
    PRIMARY KEY (account_id, environment)
);

CREATE FUNCTION note_feed_pruned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO feed_pruned AS p (account_id, environment, position)
        SELECT account_id, environment, max(position) FROM removed GROUP BY account_id, environment ORDER BY account_id, environment
        ON CONFLICT (account_id, environment) DO UPDATE SET position = greatest(p.position, excluded.position);
    RETURN NULL;
END $$;

CREATE TRIGGER feed_pruned AFTER DELETE ON feed REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION note_feed_pruned();

-- Endpoints that an account's events are sent to. cursor is the position in the feed up to which deliveries exist. One process at a time
-- sends to an endpoint: lease_holder, until lease_until.
CREATE TABLE webhooks (
    id                 uuid PRIMARY KEY,
    account_id         uuid NOT NULL,
    environment        text NOT NULL CHECK (environment IN ('test', 'live')),
    url                text NOT NULL CHECK (octet_length(url) <= 2048),
    types              text[],
    description        text NOT NULL CHECK (char_length(description) <= 256),
    enabled            boolean NOT NULL,
    disabled_reason    text CHECK (disabled_reason IN ('owner', 'gone', 'failing')),
    cursor             bigint NOT NULL,
    secret             bytea NOT NULL,
    previous_secret    bytea,
    previous_until     timestamptz,
    failing_since      timestamptz,
    lease_holder       uuid,
    lease_until        timestamptz NOT NULL DEFAULT '-infinity',
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    -- When the deliveries so far would end at the rate of first attempts.
    paced_until        timestamptz,
    -- How often the endpoint has failed since failing_since and when it last did, and when its owners were last told that it was disabled.
    failures           integer NOT NULL DEFAULT 0,
    last_failed_at     timestamptz,
    disabled_mailed_at timestamptz,
    CONSTRAINT webhooks_disabled CHECK (enabled = (disabled_reason IS NULL)),
    CONSTRAINT webhooks_rotated CHECK ((previous_secret IS NULL) = (previous_until IS NULL)),
    CONSTRAINT webhooks_enabled_or_well CHECK (enabled OR failing_since IS NULL)
);

CREATE INDEX webhooks_account ON webhooks (account_id, environment, id);

-- One event on its way to one endpoint. There is no foreign key: a deleted endpoint leaves its deliveries, which are removed later.
CREATE TABLE deliveries (
    webhook_id      uuid NOT NULL,
    event_id        uuid NOT NULL,
    position        bigint NOT NULL,
    type            text NOT NULL,
    status          text NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts        integer NOT NULL CHECK (attempts >= 0),
    next_attempt_at timestamptz,
    response_status integer,
    error           text,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (webhook_id, event_id),
    CONSTRAINT deliveries_due CHECK ((status = 'pending') = (next_attempt_at IS NOT NULL))
);

-- The list of an endpoint's deliveries, the failed ones among them, and what is due.
CREATE INDEX deliveries_position ON deliveries (webhook_id, position DESC, event_id DESC);
CREATE INDEX deliveries_failed ON deliveries (webhook_id, position DESC, event_id DESC) WHERE status = 'failed';
CREATE INDEX deliveries_due ON deliveries (webhook_id, next_attempt_at) WHERE status = 'pending';

-- The idempotency keys of requests that created webhooks. The response is sealed, as it has the secret.
CREATE TABLE webhook_requests (
    account_id      uuid NOT NULL,
    environment     text NOT NULL CHECK (environment IN ('test', 'live')),
    idempotency_key text NOT NULL CHECK (octet_length(idempotency_key) BETWEEN 1 AND 255),
    fingerprint     bytea NOT NULL CHECK (octet_length(fingerprint) = 32),
    webhook_id      uuid NOT NULL,
    response        bytea NOT NULL,
    expires_at      timestamptz NOT NULL,
    PRIMARY KEY (account_id, environment, idempotency_key)
);

CREATE INDEX webhook_requests_expiry ON webhook_requests (expires_at);

-- When an account's replays so far would end at the rate that it has.
CREATE TABLE webhook_quotas (
    account_id    uuid PRIMARY KEY,
    replays_until timestamptz NOT NULL
);

-- Work that one process does for all, by its name: holder, until lease_until by the database's clock.
CREATE TABLE leases (
    name        text PRIMARY KEY,
    holder      uuid NOT NULL,
    lease_until timestamptz NOT NULL
);
