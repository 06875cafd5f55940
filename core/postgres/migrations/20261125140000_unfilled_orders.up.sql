-- Unfilled orders of an account by when they are compared with their settlers: accounts take turns. transactions_orders stays for the
-- previous version.
CREATE INDEX CONCURRENTLY transactions_unfilled ON transactions (chain_id, account_id, due_at) WHERE state = 'mined' AND due_at IS NOT NULL;
