-- An entry about a webhook names the key that changed it. Every row satisfies the wider rule, so that none is read while writers wait.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_key, ADD CONSTRAINT audit_log_key
    CHECK (CASE WHEN action LIKE 'key\_%' THEN key_id IS NOT NULL ELSE key_id IS NULL OR action LIKE 'webhook\_%' END) NOT VALID;
