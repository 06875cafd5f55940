-- The last time and detail of an entry that stands for all of its kind in an hour, NULL for one that happened once; occurred_at is the
-- first time. Versions that do not know the columns date such an entry at the beginning of its hour, and count it.
ALTER TABLE audit_log ADD COLUMN last_at timestamptz, ADD COLUMN last_detail text;

-- The audit log is only ever added to. The rows themselves decide the exceptions: an entry older than 30 days may go, one of an ended
-- account or person may lose what tells of a person, and a repeated entry is counted.
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
        AND (OLD.action IN ('sign_in_failed', 'signed_out', 'reset_requested', 'account_switched')
            OR OLD.action LIKE 'webhook\_%' AND OLD.key_id IS NOT NULL) THEN
        IF NOT 'last_at' = ANY (changed) THEN -- a version that only counts
            NEW.last_at := now();
        END IF;
        NEW.last_at := greatest(NEW.last_at, OLD.last_at, OLD.occurred_at);
        RETURN NEW;
    END IF;
    RAISE 'the audit log is only ever added to' USING ERRCODE = 'restrict_violation', CONSTRAINT = 'audit_log_append_only';
END $$;
