ALTER TABLE mails DROP COLUMN webhook_id;
ALTER TABLE webhooks DROP COLUMN failures, DROP COLUMN last_failed_at, DROP COLUMN disabled_mailed_at;
