CREATE INDEX CONCURRENTLY IF NOT EXISTS key_usage_key ON key_usage (account_id, key_id, minute);
