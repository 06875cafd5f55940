-- The turns of the accounts whose attempts are due: what is due later is not read. transactions_queue stays for the previous version.
CREATE INDEX CONCURRENTLY transactions_attempts_turns ON transactions (chain_id, due_at, account_id)
    WHERE state IN ('pending', 'dropped') AND due_at IS NOT NULL;
