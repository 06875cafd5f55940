-- The entry of the audit log that a security notice is about.
ALTER TABLE mails ADD COLUMN audit_entry_id uuid;
