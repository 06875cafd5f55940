ALTER TABLE watched_chains DROP COLUMN unopened_until;
