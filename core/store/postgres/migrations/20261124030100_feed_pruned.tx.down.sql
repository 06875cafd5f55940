DROP TRIGGER feed_pruned ON feed;
DROP FUNCTION note_feed_pruned();
ALTER TABLE feed_state DROP COLUMN untracked_to;
DROP TABLE feed_pruned;
