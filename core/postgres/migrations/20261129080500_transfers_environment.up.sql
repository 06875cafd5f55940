-- The list of one environment, newest first.
CREATE INDEX CONCURRENTLY transfers_account_environment ON transfers (account_id, environment, id DESC);
