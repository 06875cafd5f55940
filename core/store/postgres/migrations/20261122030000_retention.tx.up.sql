-- When the personal data of an ended account was erased, null for never.
ALTER TABLE accounts ADD COLUMN erased_at timestamptz,
    ADD CONSTRAINT accounts_erased CHECK (erased_at IS NULL OR deleted_at IS NOT NULL);

-- The audit log stays one that is only ever added to, with two exceptions that the rows themselves decide: an entry that is
-- older than 30 days may go, and one of an ended account may lose what tells of a person. The version before does neither.
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

DROP TRIGGER audit_log_append_only ON audit_log;
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
