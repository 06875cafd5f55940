CREATE OR REPLACE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- What an UPDATE changes.
    changed text[] := CASE WHEN TG_OP = 'UPDATE' THEN ARRAY(
        SELECT n.key FROM jsonb_each(to_jsonb(NEW)) n JOIN jsonb_each(to_jsonb(OLD)) o USING (key) WHERE n.value IS DISTINCT FROM o.value) END;
BEGIN
    IF TG_OP = 'DELETE' AND OLD.occurred_at < now() - interval '30 days' THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND changed <@ '{key_name,detail,last_detail,ip_address,user_agent}'
        AND (NEW.key_name, NEW.detail, NEW.ip_address, NEW.user_agent) = ('', '', '', '')
        AND EXISTS (SELECT FROM accounts WHERE accounts.id = OLD.account_id AND deleted_at IS NOT NULL) THEN
        NEW.last_detail := NULL;
        RETURN NEW;
    END IF;
    -- An ended person's address and browser go from the logs of other accounts; what was done stays.
    IF TG_OP = 'UPDATE' AND changed <@ '{ip_address,user_agent}' AND (NEW.ip_address, NEW.user_agent) = ('', '')
        AND EXISTS (SELECT FROM accounts WHERE accounts.id = OLD.person_id AND deleted_at IS NOT NULL) THEN
        RETURN NEW;
    END IF;
    -- What is recorded once an hour is counted, with the time and detail of the last one, and nothing else of it changes.
    IF TG_OP = 'UPDATE' AND changed <@ '{repeats,last_at,last_detail}' AND NEW.repeats > OLD.repeats
        AND (OLD.action IN ('sign_in_failed', 'signed_out', 'reset_requested', 'account_switched', 'screening_refused')
            OR OLD.action LIKE 'webhook\_%' AND OLD.key_id IS NOT NULL) THEN
        IF NOT 'last_at' = ANY (changed) THEN -- a version that only counts
            NEW.last_at := now();
        END IF;
        NEW.last_at := greatest(NEW.last_at, OLD.last_at, OLD.occurred_at);
        RETURN NEW;
    END IF;
    RAISE 'the audit log is only ever added to' USING ERRCODE = 'restrict_violation', CONSTRAINT = 'audit_log_append_only';
END $$;

ALTER TABLE audit_log DISABLE TRIGGER USER;
DELETE FROM audit_log WHERE action = 'origins_changed';
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
    'screening_refused',
    'passkey_added', 'passkey_deleted', 'passkey_refused', 'passkeys_removed')) NOT VALID;
ALTER TABLE audit_log DROP CONSTRAINT audit_log_key;
ALTER TABLE audit_log ADD CONSTRAINT audit_log_key CHECK
    (CASE WHEN action LIKE 'key\_%' THEN key_id IS NOT NULL ELSE key_id IS NULL OR action LIKE 'webhook\_%' END);

CREATE OR REPLACE TRIGGER accounts_changed
    AFTER UPDATE OF disabled_at, deleted_at, limit_requests, limit_period_seconds
    ON accounts FOR EACH ROW EXECUTE FUNCTION note_account_keys_change();

ALTER TABLE accounts DROP origins;
