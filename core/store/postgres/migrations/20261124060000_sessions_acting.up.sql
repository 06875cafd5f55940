-- The sessions that act on an account of which the person is a member, which end with it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_acting ON sessions (acting_account_id) WHERE acting_account_id IS NOT NULL;
