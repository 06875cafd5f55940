ALTER TABLE link_tokens DROP COLUMN name, DROP COLUMN password_hash;
ALTER TABLE mails DROP COLUMN name, DROP COLUMN password_hash;
