-- Steps that the version before does not have are removed with what they led to being kept in the intents.
DELETE FROM events WHERE coalesce(from_status, 'new') || ' > ' || to_status NOT IN (
    'new > created',
    'created > submitted', 'submitted > submitted', 'failed > submitted', 'expired > submitted',
    'created > cancelled',
    'created > expired', 'submitted > expired',
    'submitted > confirmed', 'submitted > failed',
    'confirmed > filled', 'confirmed > refunded', 'confirmed > submitted');
ALTER TABLE events
    DROP COLUMN trigger,
    DROP COLUMN chain_id,
    DROP COLUMN tx_hash,
    DROP COLUMN block_number,
    ADD CONSTRAINT events_step CHECK (coalesce(from_status, 'new') || ' > ' || to_status IN (
        'new > created',
        'created > submitted', 'submitted > submitted', 'failed > submitted', 'expired > submitted',
        'created > cancelled',
        'created > expired', 'submitted > expired',
        'submitted > confirmed', 'submitted > failed',
        'confirmed > filled', 'confirmed > refunded', 'confirmed > submitted'));
ALTER TABLE transfers DROP COLUMN cancelled_at;
DROP TRIGGER chains_settler ON chains;
DROP FUNCTION keep_chain_settler;
DROP TABLE chain_activity, chain_settlers, chain_anchors, watched_chains, transactions;
