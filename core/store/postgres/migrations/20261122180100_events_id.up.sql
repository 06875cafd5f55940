-- The events without a position in the order of their ids, and the event of a row of the feed.
CREATE INDEX CONCURRENTLY IF NOT EXISTS events_id ON events (id);
