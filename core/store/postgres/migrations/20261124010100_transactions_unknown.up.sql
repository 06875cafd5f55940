-- Attempts that no provider has ever shown, to count those of an account.
CREATE INDEX CONCURRENTLY IF NOT EXISTS transactions_unknown ON transactions (chain_id, account_id)
    WHERE sender IS NULL AND state IN ('pending', 'dropped') AND due_at IS NOT NULL;
