DROP TABLE usage_reports;
DROP TABLE key_usage;
DROP TABLE audit_log;
DROP FUNCTION refuse_audit_change();
CREATE OR REPLACE TRIGGER api_keys_changed
    AFTER INSERT OR DELETE OR UPDATE OF account_id, hash, environment, enabled, expires_at, deleted_at,
        limit_requests, limit_period_seconds
    ON api_keys FOR EACH ROW EXECUTE FUNCTION note_key_change();
DROP TRIGGER api_keys_limit_bucket ON api_keys;
DROP FUNCTION default_limit_bucket();
ALTER TABLE api_keys DROP CONSTRAINT api_keys_rotated, DROP COLUMN limit_bucket, DROP COLUMN rotated_at;
DROP TABLE nonces;
DROP TABLE identities;
