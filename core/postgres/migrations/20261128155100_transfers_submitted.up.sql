-- Orders of which the solver is asked what became of them.
CREATE INDEX CONCURRENTLY transfers_submitted ON transfers (submission_due_at) WHERE submission_due_at IS NOT NULL;
