-- The intents of a batch.
CREATE INDEX CONCURRENTLY transfers_batch ON transfers (account_id, batch_id, id) WHERE batch_id IS NOT NULL;
