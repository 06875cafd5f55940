ALTER TABLE events DROP COLUMN environment;
