DROP INDEX CONCURRENTLY IF EXISTS transactions_orders_turns;
