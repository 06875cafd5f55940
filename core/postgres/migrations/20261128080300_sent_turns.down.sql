DROP INDEX CONCURRENTLY IF EXISTS transactions_sent_turns;
