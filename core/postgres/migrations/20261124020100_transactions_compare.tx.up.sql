-- When a transaction that is deep enough is compared with other providers next, null for at once, and since when they contradict it.
-- The version before compares it at each poll.
ALTER TABLE transactions
    ADD COLUMN compare_at timestamptz,
    ADD COLUMN disputed_since timestamptz;
