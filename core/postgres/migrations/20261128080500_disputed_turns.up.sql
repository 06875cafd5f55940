-- The turns of the accounts whose contradicted transactions are due.
CREATE INDEX CONCURRENTLY transactions_disputed_turns ON transactions (chain_id, compare_at, account_id)
    WHERE block_number IS NOT NULL AND confirmed_at IS NULL AND state <> 'unsupported' AND compare_at IS NOT NULL;
