-- The turns of the accounts whose unfilled orders are due. transactions_unfilled stays for the previous version.
CREATE INDEX CONCURRENTLY transactions_orders_turns ON transactions (chain_id, due_at, account_id)
    WHERE state = 'mined' AND due_at IS NOT NULL;
