DROP INDEX CONCURRENTLY IF EXISTS transactions_settled_turns;
