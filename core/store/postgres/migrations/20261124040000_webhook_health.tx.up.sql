-- How often an endpoint has failed since failing_since and when it last did, and when its owners were last told that it was disabled.
ALTER TABLE webhooks ADD COLUMN failures integer NOT NULL DEFAULT 0,
    ADD COLUMN last_failed_at timestamptz,
    ADD COLUMN disabled_mailed_at timestamptz;

-- The endpoint that a mail is about.
ALTER TABLE mails ADD COLUMN webhook_id uuid;
