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
-- Attempts by when they are looked up next, and by the hashes that are looked for in new blocks.
CREATE INDEX transactions_due ON transactions (chain_id, due_at) WHERE state IN ('pending', 'dropped') AND due_at IS NOT NULL;
CREATE INDEX transactions_pending ON transactions (chain_id, hash) WHERE state IN ('pending', 'dropped') AND due_at IS NOT NULL;
-- Open orders by when they are compared with the settler next.
CREATE INDEX transactions_orders ON transactions (chain_id, due_at) WHERE state = 'mined' AND due_at IS NOT NULL;

-- How far each chain has been read, and who reads it. A write of the watcher is valid only in its own epoch.
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

-- Every settler that a chain ever had: orders that were opened at an old one are followed to their end.
CREATE TABLE chain_settlers (
    chain_id text NOT NULL,
    address  text NOT NULL,
    PRIMARY KEY (chain_id, address)
);

INSERT INTO chain_settlers SELECT id, settler_address FROM chains WHERE settler_address IS NOT NULL;

CREATE FUNCTION keep_chain_settler() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.settler_address IS NOT NULL THEN
        INSERT INTO chain_settlers VALUES (NEW.id, NEW.settler_address) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER chains_settler AFTER INSERT OR UPDATE OF settler_address ON chains FOR EACH ROW EXECUTE FUNCTION keep_chain_settler();

-- Until when intents are expected to touch a chain. It is a table of its own, so that a POST never waits for the watcher.
CREATE TABLE chain_activity (
    chain_id     text PRIMARY KEY,
    active_until timestamptz NOT NULL
);

-- A cancelled intent whose transaction is seen on chain has another status and still was cancelled.
ALTER TABLE transfers ADD COLUMN cancelled_at timestamptz;

-- What caused a transition, and the transaction that the chain showed. Steps of the state machine change; transfer.Apply has the table.
ALTER TABLE events
    ADD COLUMN trigger text,
    ADD COLUMN chain_id text,
    ADD COLUMN tx_hash bytea,
    ADD COLUMN block_number bigint,
    DROP CONSTRAINT events_step;
