-- Entries about links stay, as the audit log is only ever added to; new ones cannot be written.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check, ADD CONSTRAINT audit_log_action_check CHECK (action IN (
    'signed_up', 'signed_in', 'sessions_revoked', 'password_changed', 'password_reset', 'account_disabled', 'account_enabled', 'account_deleted',
    'key_created', 'key_updated', 'key_rotated', 'key_deleted',
    'webhook_created', 'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted', 'webhook_replayed')) NOT VALID;
DROP TABLE mails, reset_tokens;
