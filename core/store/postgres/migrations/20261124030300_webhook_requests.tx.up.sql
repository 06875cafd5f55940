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
