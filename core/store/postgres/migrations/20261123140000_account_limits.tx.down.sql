CREATE OR REPLACE TRIGGER accounts_changed
    AFTER UPDATE OF disabled_at, deleted_at
    ON accounts FOR EACH ROW EXECUTE FUNCTION note_account_keys_change();

ALTER TABLE accounts DROP CONSTRAINT accounts_limit, DROP COLUMN limit_requests, DROP COLUMN limit_period_seconds;

-- Entries about limits stay, as the audit log is only ever added to; new ones cannot be written.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check, ADD CONSTRAINT audit_log_action_check CHECK (action IN (
    'signed_up', 'signed_in', 'sessions_revoked', 'password_changed', 'password_reset', 'reset_link_made', 'email_verified',
    'email_change_requested', 'email_changed', 'email_lost', 'identity_linked', 'identity_unlinked', 'account_shared', 'account_renamed',
    'member_invited', 'invitation_canceled', 'invitation_declined', 'member_joined', 'member_changed', 'member_removed',
    'member_left', 'account_disabled', 'account_enabled', 'account_deleted', 'key_created', 'key_updated', 'key_rotated',
    'key_deleted', 'webhook_created', 'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted', 'webhook_replayed')) NOT VALID;
