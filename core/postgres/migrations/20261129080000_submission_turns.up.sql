-- The turns of the accounts with orders of which the solver is asked what became of them. It replaces transfers_submitted, which the version before uses.
CREATE INDEX CONCURRENTLY transfers_submission_turns ON transfers (account_id, submission_due_at) WHERE submission_due_at IS NOT NULL;
