-- Attempts to look up, by account and by when they are due: accounts take turns.
CREATE INDEX CONCURRENTLY IF NOT EXISTS transactions_queue ON transactions (chain_id, account_id, due_at)
    WHERE state IN ('pending', 'dropped') AND due_at IS NOT NULL;
