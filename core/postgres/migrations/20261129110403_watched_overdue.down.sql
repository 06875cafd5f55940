DROP INDEX CONCURRENTLY IF EXISTS transfers_watched_overdue;
