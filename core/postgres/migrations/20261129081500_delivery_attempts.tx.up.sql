-- The attempts of deliveries, with the beginning of what the receivers answered. The version before reads all columns of deliveries by "*", so that
-- table gets no new ones.
CREATE TABLE delivery_attempts (
    webhook_id      uuid NOT NULL,
    event_id        uuid NOT NULL,
    ended_at        timestamptz NOT NULL,
    duration_ms     integer NOT NULL CHECK (duration_ms >= 0),
    response_status integer,
    error           text,
    response_body   text CHECK (octet_length(response_body) <= 4096),
    PRIMARY KEY (webhook_id, event_id, ended_at)
);

-- The rows that are no longer kept.
CREATE INDEX delivery_attempts_ended ON delivery_attempts (ended_at);
