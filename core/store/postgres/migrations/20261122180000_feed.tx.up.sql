-- An event's place among its intent's events, from 1; NULL in a row of the version before until the event has a position.
ALTER TABLE events ADD COLUMN sequence integer;

-- When the event of an order that can be refunded was written, NULL while it was not or the intent has moved on.
ALTER TABLE transfers ADD COLUMN refundable_at timestamptz;

-- The events of all accounts in the order in which they are read. A row leads to the event of an intent, or has the data itself.
CREATE TABLE feed (
    position    bigint PRIMARY KEY,
    account_id  uuid NOT NULL,
    environment text NOT NULL CHECK (environment IN ('test', 'live')),
    type        text NOT NULL,
    event_id    bigint,
    sequence    integer CHECK (sequence > 0),
    occurred_at timestamptz NOT NULL,
    data        json,
    CONSTRAINT feed_source CHECK ((event_id IS NULL) = (data IS NOT NULL) AND (event_id IS NULL) = (sequence IS NULL))
);

CREATE INDEX feed_account ON feed (account_id, environment, position);

-- One row, whose lock gives the right to give positions. unread are the ids of events that have no position and may still appear.
-- Every transaction that can write an event up to checked_id has an id below checked_xid, in that cluster.
CREATE TABLE feed_state (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    last_position bigint NOT NULL DEFAULT 0,
    pruned_to     bigint NOT NULL DEFAULT 0,
    unread        int8multirange NOT NULL DEFAULT '{[1,)}',
    checked_id    bigint,
    checked_xid   xid8,
    cluster       text,
    CONSTRAINT feed_state_checked CHECK ((checked_id IS NULL) = (checked_xid IS NULL) AND (checked_id IS NULL) = (cluster IS NULL))
);

INSERT INTO feed_state DEFAULT VALUES;
