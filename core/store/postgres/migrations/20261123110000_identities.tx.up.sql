-- Smart accounts are identities of their chain: the issuer is its CAIP-2 id, such as eip155:1, and the subject the address in lower case.
-- Only this version writes such issuers, so that no row breaks the rule.
ALTER TABLE identities ADD CONSTRAINT identities_smart_account CHECK (
    issuer NOT LIKE 'eip155:%' OR issuer ~ '^eip155:[1-9][0-9]{0,15}$' AND subject ~ '^0x[0-9a-f]{40}$') NOT VALID;

-- The audit log names identities that were linked or unlinked. Every row satisfies the wider rule, so that none is read while writers wait.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check, ADD CONSTRAINT audit_log_action_check CHECK (action IN (
    'signed_up', 'signed_in', 'sessions_revoked', 'password_changed', 'password_reset', 'reset_link_made', 'email_verified',
    'email_change_requested', 'email_changed', 'email_lost', 'identity_linked', 'identity_unlinked', 'account_disabled',
    'account_enabled', 'account_deleted', 'key_created', 'key_updated', 'key_rotated', 'key_deleted', 'webhook_created',
    'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted', 'webhook_replayed')) NOT VALID;
