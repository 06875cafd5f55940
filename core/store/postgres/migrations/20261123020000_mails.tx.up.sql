-- Mails that are to be sent. A row names what the mail is about and whom it goes to; its text is written when it is sent, so that no link
-- is stored. It is due at next_attempt_at, which its sender moves ahead first, and is deleted once the mail is sent or given up.
CREATE TABLE mails (
    id              uuid PRIMARY KEY,
    kind            text NOT NULL,
    recipient       text NOT NULL CHECK (char_length(recipient) <= 254),
    attempts        integer NOT NULL CHECK (attempts >= 0),
    next_attempt_at timestamptz NOT NULL,
    created_at      timestamptz NOT NULL
);

CREATE INDEX mails_due ON mails (next_attempt_at);
CREATE INDEX mails_age ON mails (created_at);
CREATE INDEX mails_recipient ON mails (recipient);

-- Tokens of links to a new password, known by their SHA-256. A use removes all of the account, so each is good once.
CREATE TABLE reset_tokens (
    hash       bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    account_id uuid NOT NULL REFERENCES accounts,
    expires_at timestamptz NOT NULL
);

CREATE INDEX reset_tokens_account ON reset_tokens (account_id);
CREATE INDEX reset_tokens_expiry ON reset_tokens (expires_at);

-- The audit log names links that an operator made. Every row satisfies the wider rule, so that none is read while writers wait.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check, ADD CONSTRAINT audit_log_action_check CHECK (action IN (
    'signed_up', 'signed_in', 'sessions_revoked', 'password_changed', 'password_reset', 'reset_link_made',
    'account_disabled', 'account_enabled', 'account_deleted',
    'key_created', 'key_updated', 'key_rotated', 'key_deleted',
    'webhook_created', 'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted', 'webhook_replayed')) NOT VALID;
