-- The limit of all keys of an account in one environment together, where an operator set one; NULL for the default.
ALTER TABLE accounts ADD COLUMN limit_requests integer, ADD COLUMN limit_period_seconds integer,
    ADD CONSTRAINT accounts_limit CHECK ((limit_requests IS NULL) = (limit_period_seconds IS NULL)
        AND limit_requests > 0 AND limit_period_seconds > 0);

-- An account with a key whose limit was raised above the default has 20 times that.
UPDATE accounts SET limit_requests = least(20 * raised.limit_requests::bigint, 1000000000), limit_period_seconds = raised.limit_period_seconds
FROM (
    SELECT DISTINCT ON (account_id) account_id, limit_requests, limit_period_seconds FROM api_keys
    WHERE deleted_at IS NULL AND limit_requests::float8 / limit_period_seconds > 50 / 60.0
    ORDER BY account_id, limit_requests::float8 / limit_period_seconds DESC
) AS raised WHERE accounts.id = raised.account_id AND accounts.deleted_at IS NULL;

CREATE OR REPLACE TRIGGER accounts_changed
    AFTER UPDATE OF disabled_at, deleted_at, limit_requests, limit_period_seconds
    ON accounts FOR EACH ROW EXECUTE FUNCTION note_account_keys_change();

-- The audit log names the change of a limit. Every row satisfies the wider rule, so that none is read while writers wait.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check, ADD CONSTRAINT audit_log_action_check CHECK (action IN (
    'signed_up', 'signed_in', 'sessions_revoked', 'password_changed', 'password_reset', 'reset_link_made', 'email_verified',
    'email_change_requested', 'email_changed', 'email_lost', 'identity_linked', 'identity_unlinked', 'account_shared', 'account_renamed',
    'member_invited', 'invitation_canceled', 'invitation_declined', 'member_joined', 'member_changed', 'member_removed',
    'member_left', 'account_limit_changed', 'account_disabled', 'account_enabled', 'account_deleted', 'key_created', 'key_updated',
    'key_rotated', 'key_deleted', 'webhook_created', 'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted',
    'webhook_replayed')) NOT VALID;
