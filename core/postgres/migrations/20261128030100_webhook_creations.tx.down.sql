ALTER TABLE webhook_quotas ALTER COLUMN replays_until DROP DEFAULT;
ALTER TABLE webhook_quotas DROP COLUMN creations_until;
