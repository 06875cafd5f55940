DROP INDEX CONCURRENTLY IF EXISTS transfers_account_environment;
