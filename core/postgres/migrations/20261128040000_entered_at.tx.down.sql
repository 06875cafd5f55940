ALTER TABLE accounts DROP COLUMN entered_at;
