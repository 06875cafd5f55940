-- Whether a chain has open orders, among many that were refunded.
CREATE INDEX CONCURRENTLY transactions_open ON transactions (chain_id) WHERE state = 'mined' AND due_at IS NOT NULL AND role = 'open';
