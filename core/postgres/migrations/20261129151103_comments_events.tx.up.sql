-- What each table and column means, which \d+ shows. COMMENT takes a lock that lets others read and write. A later migration that adds a column or
-- changes a meaning has a COMMENT of its own.

COMMENT ON TABLE feed IS
    'Events of all accounts in the order in which clients read them. Events get their position after their commit, in rounds of one'
    ' core at a time, because transactions do not commit in the order of their numbers. Kept for CORE_EVENTS_RETENTION.';
COMMENT ON COLUMN feed.position IS
    'Place in the feed: at least the database''s clock in microseconds and above the one before, so that positions after a restored '
    'backup or a failover are above all that a reader has seen.';
COMMENT ON COLUMN feed.account_id IS 'The account of the event.';
COMMENT ON COLUMN feed.environment IS 'test or live.';
COMMENT ON COLUMN feed.type IS 'Type of the event.';
COMMENT ON COLUMN feed.event_id IS 'events.id of an intent''s event; NULL for another event.';
COMMENT ON COLUMN feed.sequence IS 'Place among the events of the intent; NULL for another event.';
COMMENT ON COLUMN feed.occurred_at IS 'When it happened.';
COMMENT ON COLUMN feed.data IS 'Body of an event that is not an intent''s; NULL for an intent''s, whose body is made when it is read.';
COMMENT ON COLUMN feed.id IS
    'Id for clients: a hash of intent, sequence and time, or random for data, so that after a restored backup no other event has '
    'the id of a lost one.';

COMMENT ON TABLE feed_state IS 'One row, whose lock gives the right to assign positions.';
COMMENT ON COLUMN feed_state.only_row IS 'True, which keeps it one row.';
COMMENT ON COLUMN feed_state.last_position IS 'Newest position that was assigned.';
COMMENT ON COLUMN feed_state.unread IS
    'events.id of events without a position that may still appear: all above the newest, and the gaps below it.';
COMMENT ON COLUMN feed_state.checked_id IS
    'Newest events.id of which it is known which transactions can still write up to it; NULL for none.';
COMMENT ON COLUMN feed_state.checked_xid IS 'All transactions that can write an event up to checked_id are below this.';
COMMENT ON COLUMN feed_state.cluster IS 'Cluster identity in which checked_xid is valid.';

COMMENT ON TABLE feed_pruned IS
    'Newest position that was removed of each owner''s feed, written by a trigger. A cursor before it gets 410.';
COMMENT ON COLUMN feed_pruned.account_id IS 'The account.';
COMMENT ON COLUMN feed_pruned.environment IS 'test or live.';
COMMENT ON COLUMN feed_pruned.position IS 'Newest position that was removed.';

COMMENT ON TABLE webhooks IS
    'Endpoints that the events of accounts are posted to. Deleting one deletes its pending deliveries, up to 5,000 at once, by the '
    'trigger webhooks_ended; the end of an account deletes its endpoints.';
COMMENT ON COLUMN webhooks.id IS 'Endpoint id.';
COMMENT ON COLUMN webhooks.account_id IS 'The account that owns it.';
COMMENT ON COLUMN webhooks.environment IS 'test or live: whose events it gets.';
COMMENT ON COLUMN webhooks.url IS 'Where events are posted, at most 2,048 bytes.';
COMMENT ON COLUMN webhooks.types IS 'Types of events that it gets; NULL for all.';
COMMENT ON COLUMN webhooks.description IS 'The owner''s own text, at most 256 characters.';
COMMENT ON COLUMN webhooks.enabled IS 'Whether events are sent.';
COMMENT ON COLUMN webhooks.disabled_reason IS 'owner, gone (the endpoint answered 410) or failing; NULL while it is enabled.';
COMMENT ON COLUMN webhooks.cursor IS 'Position in the feed up to which deliveries has rows.';
COMMENT ON COLUMN webhooks.secret IS
    'Signing secret, sealed with AES-256-GCM under CORE_WEBHOOK_SECRET_KEY with the id as associated data.';
COMMENT ON COLUMN webhooks.previous_secret IS
    'Secret before a rotation, sealed too, which signs as well until previous_until; NULL for none.';
COMMENT ON COLUMN webhooks.previous_until IS 'Until when previous_secret signs; NULL for none.';
COMMENT ON COLUMN webhooks.failing_since IS
    'First failure since the last success; NULL while it does not fail. Two days without an attempt begin a new period.';
COMMENT ON COLUMN webhooks.lease_holder IS 'The core that sends to it until lease_until; NULL for none.';
COMMENT ON COLUMN webhooks.lease_until IS
    'Until when lease_holder alone sends, by the database''s clock. It is no lock: a core that was paused past it may send an event '
    'that another sends.';
COMMENT ON COLUMN webhooks.created_at IS 'When it was made.';
COMMENT ON COLUMN webhooks.updated_at IS 'When the owner last changed it.';
COMMENT ON COLUMN webhooks.paced_until IS
    'Until when the first attempts so far would last at their rate, 1,000 at once and 100 a second; NULL for none.';
COMMENT ON COLUMN webhooks.failures IS 'Number of failures since failing_since.';
COMMENT ON COLUMN webhooks.last_failed_at IS 'Last failure; NULL for none.';
COMMENT ON COLUMN webhooks.disabled_mailed_at IS 'When the owners were last mailed that it was disabled; NULL for never.';

COMMENT ON TABLE deliveries IS
    'State of an event at an endpoint. Bodies are not stored but made from the feed. There is no foreign key. Kept 30 days; those '
    'of a deleted endpoint are pruned within the hour.';
COMMENT ON COLUMN deliveries.webhook_id IS 'The endpoint.';
COMMENT ON COLUMN deliveries.event_id IS 'Id of the event for clients.';
COMMENT ON COLUMN deliveries.position IS 'Position in the feed; of a test, whose event is not in the feed, its time in microseconds.';
COMMENT ON COLUMN deliveries.type IS 'Type of the event.';
COMMENT ON COLUMN deliveries.status IS 'pending, delivered or failed.';
COMMENT ON COLUMN deliveries.attempts IS
    'Number of attempts so far. An outcome is written only if this and next_attempt_at are as its sender read them, so that each '
    'attempt counts once.';
COMMENT ON COLUMN deliveries.next_attempt_at IS 'When it is sent next; NULL once it is delivered or failed.';
COMMENT ON COLUMN deliveries.response_status IS 'Status of the last answer; NULL for none.';
COMMENT ON COLUMN deliveries.error IS 'What went wrong in the last attempt; NULL for nothing.';
COMMENT ON COLUMN deliveries.created_at IS 'When the row was made.';
COMMENT ON COLUMN deliveries.updated_at IS 'When an attempt last ended.';
COMMENT ON COLUMN deliveries.test IS 'Whether the event is a test, which is not in the feed.';

COMMENT ON TABLE delivery_attempts IS
    'What came of each attempt, inserted by the statement that writes its outcome. A delivery''s newest 20 are shown. Kept 7 days.';
COMMENT ON COLUMN delivery_attempts.webhook_id IS 'The endpoint.';
COMMENT ON COLUMN delivery_attempts.event_id IS 'Id of the event for clients.';
COMMENT ON COLUMN delivery_attempts.ended_at IS 'When the attempt ended.';
COMMENT ON COLUMN delivery_attempts.duration_ms IS 'How long it took in milliseconds.';
COMMENT ON COLUMN delivery_attempts.response_status IS 'Status of the answer; NULL for none.';
COMMENT ON COLUMN delivery_attempts.error IS 'What went wrong; NULL for nothing.';
COMMENT ON COLUMN delivery_attempts.response_body IS 'First 4 KiB of the answer, 512 bytes of a 2xx, as text; NULL for none.';

COMMENT ON TABLE webhook_requests IS
    'Idempotency keys of requests that made endpoints, for a day. The lock on the account''s row orders concurrent requests.';
COMMENT ON COLUMN webhook_requests.account_id IS 'The account.';
COMMENT ON COLUMN webhook_requests.environment IS 'test or live.';
COMMENT ON COLUMN webhook_requests.idempotency_key IS 'The key.';
COMMENT ON COLUMN webhook_requests.fingerprint IS 'Hash of what the request asked for.';
COMMENT ON COLUMN webhook_requests.webhook_id IS 'The endpoint that it made.';
COMMENT ON COLUMN webhook_requests.response IS
    'The whole response, sealed like a secret because it has the secret: the same request gets it again.';
COMMENT ON COLUMN webhook_requests.expires_at IS 'When the key is free again.';

COMMENT ON TABLE webhook_quotas IS 'Rates of an account, as times until which what it did so far would last.';
COMMENT ON COLUMN webhook_quotas.account_id IS 'The account.';
COMMENT ON COLUMN webhook_quotas.replays_until IS 'Until when its replays would last: 20 at once and one in half an hour.';
COMMENT ON COLUMN webhook_quotas.creations_until IS
    'Until when its creations of endpoints would last, 60 at once and one a minute; NULL for none.';

COMMENT ON TABLE leases IS 'Work that one core does for all. A lease is no lock.';
COMMENT ON COLUMN leases.name IS 'Name of the work: webhook dispatch.';
COMMENT ON COLUMN leases.holder IS 'The core that does it.';
COMMENT ON COLUMN leases.lease_until IS 'Until when, by the database''s clock.';
