DROP INDEX CONCURRENTLY IF EXISTS transfers_refundable_destination;
