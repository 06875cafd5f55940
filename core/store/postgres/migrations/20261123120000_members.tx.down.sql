-- Shared accounts end, as nobody can act on them any more. Entries about members stay, as the audit log is only ever added to; new ones
-- cannot be written.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check, ADD CONSTRAINT audit_log_action_check CHECK (action IN (
    'signed_up', 'signed_in', 'sessions_revoked', 'password_changed', 'password_reset', 'reset_link_made', 'email_verified',
    'email_change_requested', 'email_changed', 'email_lost', 'identity_linked', 'identity_unlinked', 'account_disabled',
    'account_enabled', 'account_deleted', 'key_created', 'key_updated', 'key_rotated', 'key_deleted', 'webhook_created',
    'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted', 'webhook_replayed')) NOT VALID;
CREATE OR REPLACE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.occurred_at < now() - interval '30 days' THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND (NEW.id, NEW.account_id, NEW.occurred_at, NEW.actor, NEW.action) = (OLD.id, OLD.account_id, OLD.occurred_at, OLD.actor, OLD.action)
        AND NEW.key_id IS NOT DISTINCT FROM OLD.key_id
        AND (NEW.key_name, NEW.detail, NEW.ip_address, NEW.user_agent) = ('', '', '', '')
        AND EXISTS (SELECT FROM accounts WHERE accounts.id = OLD.account_id AND deleted_at IS NOT NULL) THEN
        RETURN NEW;
    END IF;
    RAISE 'the audit log is only ever added to' USING ERRCODE = 'restrict_violation', CONSTRAINT = 'audit_log_append_only';
END $$;
ALTER TABLE audit_log DROP COLUMN person_id;
DELETE FROM mails WHERE invitation_id IS NOT NULL;
ALTER TABLE mails DROP COLUMN invitation_id;
ALTER TABLE sessions DROP COLUMN acting_account_id;
DROP TRIGGER accounts_holder ON accounts;
DROP TRIGGER accounts_ended ON accounts;
DROP FUNCTION add_holder, end_memberships;
DROP TABLE invitations, members;
UPDATE accounts SET deleted_at = now() WHERE shared AND deleted_at IS NULL;
ALTER TABLE accounts DROP COLUMN shared;
