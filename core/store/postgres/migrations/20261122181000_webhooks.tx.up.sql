-- Endpoints that an account's events are sent to. cursor is the position in the feed up to which deliveries exist. One process at a time
-- sends to an endpoint: lease_holder, until lease_until.
CREATE TABLE webhooks (
    id              uuid PRIMARY KEY,
    account_id      uuid NOT NULL,
    environment     text NOT NULL CHECK (environment IN ('test', 'live')),
    url             text NOT NULL CHECK (octet_length(url) <= 2048),
    types           text[],
    description     text NOT NULL CHECK (char_length(description) <= 256),
    enabled         boolean NOT NULL,
    disabled_reason text CHECK (disabled_reason IN ('owner', 'gone', 'failing')),
    cursor          bigint NOT NULL,
    secret          bytea NOT NULL,
    previous_secret bytea,
    previous_until  timestamptz,
    failing_since   timestamptz,
    lease_holder    uuid,
    lease_until     timestamptz NOT NULL DEFAULT '-infinity',
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
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

-- The audit log names what is done to webhooks. Every row satisfies the wider rule, so that none is read while writers wait.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check, ADD CONSTRAINT audit_log_action_check CHECK (action IN (
    'signed_up', 'signed_in', 'sessions_revoked', 'password_reset', 'account_disabled', 'account_enabled', 'account_deleted',
    'key_created', 'key_updated', 'key_rotated', 'key_deleted',
    'webhook_created', 'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted', 'webhook_replayed')) NOT VALID;
