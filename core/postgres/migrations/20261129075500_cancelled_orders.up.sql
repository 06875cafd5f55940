-- The cancelled orders past their deadlines, which are compared with their settlers once: transfers_overdue has those that were sent.
CREATE INDEX CONCURRENTLY cancelled_orders ON transfers (source_chain, deadline) WHERE status = 'cancelled' AND type <> 'transfer';
