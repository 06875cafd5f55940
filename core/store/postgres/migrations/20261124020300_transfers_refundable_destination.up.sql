-- Open orders by destination chain and deadline: those of a chain that is not read past their deadlines are not looked at.
-- transfers_refundable stays for the version before, which tells of them by their deadlines alone.
CREATE INDEX CONCURRENTLY IF NOT EXISTS transfers_refundable_destination ON transfers (destination_chain, deadline)
    WHERE status = 'confirmed' AND type <> 'transfer' AND refundable_at IS NULL;
