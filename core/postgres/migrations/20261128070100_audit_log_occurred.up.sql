-- An account's audit log, newest first. audit_log_account stays for the previous version.
CREATE INDEX CONCURRENTLY audit_log_occurred ON audit_log (account_id, occurred_at DESC, id DESC);
