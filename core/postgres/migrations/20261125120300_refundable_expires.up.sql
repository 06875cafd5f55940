-- Open orders of which no event says that they can be refunded, by source chain and expiry: those of a chain that is not read past their
-- expiry are not looked at. transfers_refundable_destination stays for the previous version.
CREATE INDEX CONCURRENTLY transfers_refundable ON transfers (source_chain, expires)
    WHERE status = 'confirmed' AND type <> 'transfer' AND refundable_at IS NULL;
