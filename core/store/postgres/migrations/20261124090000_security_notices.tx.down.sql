ALTER TABLE mails DROP COLUMN audit_entry_id;
