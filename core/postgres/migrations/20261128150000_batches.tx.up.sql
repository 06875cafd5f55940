-- Batches of intents that one request has created. The idempotency keys of batches and of single intents are two name spaces.
CREATE TABLE batches (
    account_id      uuid NOT NULL,
    id              uuid NOT NULL,
    key_id          uuid NOT NULL,
    environment     text NOT NULL CHECK (environment IN ('test', 'live')),
    idempotency_key text NOT NULL,
    count           integer NOT NULL CHECK (count > 0),
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (account_id, id)
);

CREATE UNIQUE INDEX batches_once ON batches (account_id, environment, idempotency_key);

-- The batch that an intent was created in, NULL for none.
ALTER TABLE transfers ADD batch_id uuid;
