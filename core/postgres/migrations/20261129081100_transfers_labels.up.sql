-- The intents that have labels.
CREATE INDEX CONCURRENTLY transfers_labels ON transfers (account_id, id DESC) WHERE labels IS NOT NULL;
