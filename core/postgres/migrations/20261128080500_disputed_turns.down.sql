DROP INDEX CONCURRENTLY IF EXISTS transactions_disputed_turns;
