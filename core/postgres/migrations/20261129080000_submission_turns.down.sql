DROP INDEX CONCURRENTLY IF EXISTS transfers_submission_turns;
