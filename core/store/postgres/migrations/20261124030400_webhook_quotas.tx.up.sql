-- When an endpoint's deliveries so far would end at the rate of its first attempts, NULL where there were none.
ALTER TABLE webhooks ADD COLUMN paced_until timestamptz;

-- When an account's replays so far would end at the rate that it has.
CREATE TABLE webhook_quotas (
    account_id    uuid PRIMARY KEY,
    replays_until timestamptz NOT NULL
);
