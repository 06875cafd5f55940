ALTER TABLE transfers DROP COLUMN answered;
ALTER TABLE transactions DROP COLUMN compare_at, DROP COLUMN disputed_since;
