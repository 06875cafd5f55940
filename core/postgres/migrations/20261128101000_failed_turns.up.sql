-- The turns of the accounts whose failed attempts are read again.
CREATE INDEX CONCURRENTLY transactions_failed_turns ON transactions (chain_id, due_at, account_id)
    WHERE state IN ('reverted', 'replaced', 'mismatch', 'order_mismatch') AND due_at IS NOT NULL;
