-- The orders past their deadlines of which only attempts are known, which are compared with their settlers once. transfers_expiry has those
-- without any.
CREATE INDEX CONCURRENTLY transfers_overdue ON transfers (source_chain, deadline) WHERE status IN ('submitted', 'failed') AND type <> 'transfer';
