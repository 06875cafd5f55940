DROP INDEX CONCURRENTLY IF EXISTS transactions_failed_turns;
