-- What is deep enough and due to be compared with other providers, whatever else waits for its time.
CREATE INDEX CONCURRENTLY IF NOT EXISTS transactions_compare ON transactions (chain_id, compare_at, block_number)
    WHERE block_number IS NOT NULL AND confirmed_at IS NULL;
