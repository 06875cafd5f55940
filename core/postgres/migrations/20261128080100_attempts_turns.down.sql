DROP INDEX CONCURRENTLY IF EXISTS transactions_attempts_turns;
