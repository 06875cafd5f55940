-- When a transaction that other providers contradict is compared next and since when they do, NULL for one that none contradicts, and
-- whether a fill, claim or refund of an order is known. disputed_transactions stays for the previous version.
ALTER TABLE transactions ADD COLUMN compare_at timestamptz, ADD COLUMN disputed_since timestamptz;
ALTER TABLE transfers ADD COLUMN answered boolean NOT NULL DEFAULT false;
