-- Entries that name a key stay, as the audit log is only ever added to; new ones cannot be written.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_key, ADD CONSTRAINT audit_log_key
    CHECK ((key_id IS NOT NULL) = (action LIKE 'key\_%')) NOT VALID;
