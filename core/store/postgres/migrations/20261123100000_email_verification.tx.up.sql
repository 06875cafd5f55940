-- When the owner of an account proved to receive its mail, and whether they must before they sign in. The version before writes neither: its
-- accounts have an address that nobody proved, and sign in.
ALTER TABLE accounts ADD COLUMN email_verified_at timestamptz, ADD COLUMN verification_required boolean NOT NULL DEFAULT false;

-- Accounts without a password have the address that an OpenID Connect issuer had verified, or one under .invalid. An operator vouched for the
-- addresses of the accounts they made.
UPDATE accounts SET email_verified_at = created_at WHERE deleted_at IS NULL AND email NOT LIKE '%.invalid' AND (password_hash = ''
    OR EXISTS (SELECT FROM audit_log WHERE audit_log.account_id = accounts.id AND action = 'signed_up' AND actor = 'operator'));

-- The address that a link to a new password was mailed to, whose owner its user is. NULL for a link that an operator made, or the version
-- before.
ALTER TABLE reset_tokens ADD COLUMN email text;

-- Tokens of links that prove an address, known by their SHA-256, for one use. email is the address of the account when the link was made;
-- the token is void once the account has another. new_email is the address that the account is to get.
CREATE TABLE link_tokens (
    hash       bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    purpose    text NOT NULL CHECK (purpose IN ('verify_email', 'confirm_email_change', 'change_email')),
    account_id uuid NOT NULL REFERENCES accounts,
    email      text NOT NULL CHECK (char_length(email) <= 254),
    new_email  text CHECK (char_length(new_email) <= 254),
    expires_at timestamptz NOT NULL,
    CONSTRAINT link_tokens_new_email CHECK ((purpose = 'verify_email') = (new_email IS NULL))
);

CREATE INDEX link_tokens_account ON link_tokens (account_id);
CREATE INDEX link_tokens_expiry ON link_tokens (expires_at);

-- What a mail needs besides its recipient: the account that asked for it, the address it is to get, and the path where its link leads.
ALTER TABLE mails ADD COLUMN account_id uuid, ADD COLUMN new_email text, ADD COLUMN callback text;

-- The audit log names what becomes of addresses. Every row satisfies the wider rule, so that none is read while writers wait.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check, ADD CONSTRAINT audit_log_action_check CHECK (action IN (
    'signed_up', 'signed_in', 'sessions_revoked', 'password_changed', 'password_reset', 'reset_link_made', 'email_verified',
    'email_change_requested', 'email_changed', 'email_lost', 'account_disabled', 'account_enabled', 'account_deleted', 'key_created',
    'key_updated', 'key_rotated', 'key_deleted', 'webhook_created', 'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted',
    'webhook_replayed')) NOT VALID;
