-- The version before requires a hash of what was sent, so simulated intents end, and their events have an empty hash, which it shows as none.
UPDATE transfers SET status = 'expired', failure = NULL WHERE simulated;
UPDATE events SET hash = '' WHERE simulated AND hash IS NULL;
ALTER TABLE transfers
    DROP CONSTRAINT transfers_sent,
    ADD CONSTRAINT transfers_sent CHECK (hash IS NOT NULL OR status NOT IN ('submitted', 'confirmed', 'filled', 'refunded', 'failed')),
    DROP simulated;
ALTER TABLE events
    DROP CONSTRAINT events_sent,
    ADD CONSTRAINT events_sent CHECK (hash IS NOT NULL OR to_status IN ('created', 'cancelled', 'expired')),
    DROP simulated;
