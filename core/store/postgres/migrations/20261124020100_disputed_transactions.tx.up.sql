-- Transactions that are deep enough and that other providers do not show the same: since when, and when they are compared next. It is
-- a table of its own, because the version before reads all columns of transactions.
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
