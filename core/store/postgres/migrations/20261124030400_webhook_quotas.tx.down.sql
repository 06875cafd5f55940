DROP TABLE webhook_quotas;
ALTER TABLE webhooks DROP COLUMN paced_until;
