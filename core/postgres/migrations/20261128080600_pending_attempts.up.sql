-- Whether a chain has attempts that may still be mined, among many that were dropped.
CREATE INDEX CONCURRENTLY transactions_waiting ON transactions (chain_id) WHERE state = 'pending' AND due_at IS NOT NULL;
