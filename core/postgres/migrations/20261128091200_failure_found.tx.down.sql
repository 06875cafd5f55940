ALTER TABLE transactions DROP COLUMN found;
ALTER TABLE events DROP COLUMN found;
