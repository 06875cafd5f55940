-- The same of the settlers' transactions, which count once they are final.
CREATE INDEX CONCURRENTLY transactions_settled_turns ON transactions (chain_id, block_number, account_id)
    WHERE block_number IS NOT NULL AND confirmed_at IS NULL AND state <> 'unsupported' AND compare_at IS NULL AND role NOT IN ('send', 'open');
