-- Open orders by when they can be refunded, as long as no event has told of it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS transfers_refundable ON transfers (deadline)
    WHERE status = 'confirmed' AND type <> 'transfer' AND refundable_at IS NULL;
