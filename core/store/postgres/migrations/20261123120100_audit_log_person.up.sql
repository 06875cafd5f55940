-- What a member did in the accounts of others, to erase it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_log_person ON audit_log (person_id) WHERE person_id IS NOT NULL;
