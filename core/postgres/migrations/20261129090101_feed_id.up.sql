-- An account's event by its id.
CREATE INDEX CONCURRENTLY feed_id ON feed (account_id, id);
