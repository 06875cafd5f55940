CREATE OR REPLACE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.occurred_at < now() - interval '30 days' THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND (NEW.id, NEW.account_id, NEW.occurred_at, NEW.actor, NEW.action) = (OLD.id, OLD.account_id, OLD.occurred_at, OLD.actor, OLD.action)
        AND NEW.key_id IS NOT DISTINCT FROM OLD.key_id AND NEW.person_id IS NOT DISTINCT FROM OLD.person_id
        AND (NEW.key_name, NEW.detail, NEW.ip_address, NEW.user_agent) = ('', '', '', '')
        AND EXISTS (SELECT FROM accounts WHERE accounts.id = OLD.account_id AND deleted_at IS NOT NULL) THEN
        RETURN NEW;
    END IF;
    -- An ended person's address and browser go from the logs of other accounts; what was done stays.
    IF TG_OP = 'UPDATE' AND to_jsonb(NEW) - '{ip_address,user_agent}'::text[] = to_jsonb(OLD) - '{ip_address,user_agent}'::text[]
        AND (NEW.ip_address, NEW.user_agent) = ('', '')
        AND EXISTS (SELECT FROM accounts WHERE accounts.id = OLD.person_id AND deleted_at IS NOT NULL) THEN
        RETURN NEW;
    END IF;
    -- What is recorded once an hour is counted, and nothing else of it changes.
    IF TG_OP = 'UPDATE' AND OLD.action IN ('sign_in_failed', 'signed_out', 'reset_requested', 'account_switched')
        AND NEW.repeats > OLD.repeats AND to_jsonb(NEW) - 'repeats' = to_jsonb(OLD) - 'repeats' THEN
        RETURN NEW;
    END IF;
    RAISE 'the audit log is only ever added to' USING ERRCODE = 'restrict_violation', CONSTRAINT = 'audit_log_append_only';
END $$;

ALTER TABLE audit_log DROP COLUMN last_at, DROP COLUMN last_detail;
