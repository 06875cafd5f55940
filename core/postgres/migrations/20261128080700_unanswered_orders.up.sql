-- Open orders that nobody has answered and of which no event says that they can be refunded. transfers_refundable stays for the previous
-- version.
CREATE INDEX CONCURRENTLY transfers_unanswered ON transfers (source_chain, expires)
    WHERE status = 'confirmed' AND type <> 'transfer' AND refundable_at IS NULL AND NOT answered;
