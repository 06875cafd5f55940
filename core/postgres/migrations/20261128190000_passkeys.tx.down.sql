ALTER TABLE audit_log DISABLE TRIGGER USER;
DELETE FROM audit_log WHERE action IN ('passkey_added', 'passkey_deleted', 'passkey_refused', 'passkeys_removed');
ALTER TABLE audit_log ENABLE TRIGGER USER;
ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check;
ALTER TABLE audit_log ADD CONSTRAINT audit_log_action_check CHECK (action IN (
    'signed_up', 'signed_in', 'sign_in_failed', 'signed_out', 'sessions_revoked', 'reset_requested', 'account_switched',
    'password_changed', 'password_reset', 'reset_link_made', 'email_verified', 'email_change_requested', 'email_changed',
    'email_lost', 'identity_linked', 'identity_unlinked', 'account_shared', 'account_renamed', 'member_invited',
    'invitation_canceled', 'invitation_declined', 'member_joined', 'member_changed', 'member_removed', 'member_left',
    'account_limit_changed', 'account_disabled', 'account_enabled', 'account_deleted', 'key_created', 'key_updated',
    'key_rotated', 'key_deleted', 'webhook_created', 'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted',
    'webhook_replayed',
    'screening_refused')) NOT VALID;

ALTER TABLE sessions DROP confirmed_at, DROP factor;
ALTER TABLE accounts DROP webauthn_handle;
DROP TABLE sign_in_challenges, passkeys;
