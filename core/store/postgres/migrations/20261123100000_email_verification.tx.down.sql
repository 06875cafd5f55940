-- Entries about addresses stay, as the audit log is only ever added to; new ones cannot be written. Mails that only this version writes go.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check, ADD CONSTRAINT audit_log_action_check CHECK (action IN (
    'signed_up', 'signed_in', 'sessions_revoked', 'password_changed', 'password_reset', 'reset_link_made', 'account_disabled',
    'account_enabled', 'account_deleted', 'key_created', 'key_updated', 'key_rotated', 'key_deleted', 'webhook_created',
    'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted', 'webhook_replayed')) NOT VALID;
DELETE FROM mails WHERE kind <> 'reset_password';
ALTER TABLE mails DROP COLUMN account_id, DROP COLUMN new_email, DROP COLUMN callback;
DROP TABLE link_tokens;
ALTER TABLE reset_tokens DROP COLUMN email;
ALTER TABLE accounts DROP COLUMN email_verified_at, DROP COLUMN verification_required;
