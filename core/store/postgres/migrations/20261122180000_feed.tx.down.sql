DROP TABLE feed_state, feed;
ALTER TABLE transfers DROP COLUMN refundable_at;
ALTER TABLE events DROP COLUMN sequence;
