-- The environment of an intent, in its first event: the feed needs it and would read each new intent for it. It is NULL in later events,
-- and in those of versions that do not write it.
ALTER TABLE events ADD COLUMN environment text;
