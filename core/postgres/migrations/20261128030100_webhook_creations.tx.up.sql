-- When an account's creations of endpoints so far would end at the rate that it has, NULL for none.
ALTER TABLE webhook_quotas ADD COLUMN creations_until timestamptz;
ALTER TABLE webhook_quotas ALTER COLUMN replays_until SET DEFAULT '-infinity';
