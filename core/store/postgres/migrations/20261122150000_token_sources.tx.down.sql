ALTER TABLE tokens DROP COLUMN source, DROP COLUMN license;
