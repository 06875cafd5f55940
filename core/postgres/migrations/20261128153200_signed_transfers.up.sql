-- Transfers with a signature that are not executed, account by account: the watcher of their chain asks their tokens.
CREATE INDEX CONCURRENTLY signed_transfers ON transfers (source_chain, account_id, id)
    WHERE signature IS NOT NULL AND type = 'transfer' AND status IN ('created', 'submitted', 'failed', 'expired');
