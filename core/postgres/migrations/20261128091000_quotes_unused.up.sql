-- The unused quotes of an account, of which only so many are kept.
CREATE INDEX CONCURRENTLY quotes_unused ON quotes (account_id, id) WHERE transfer_id IS NULL;
