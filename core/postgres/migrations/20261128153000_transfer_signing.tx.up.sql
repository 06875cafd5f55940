-- How the user signs an intent, NULL for one whose user sends a transaction, and the last valid signature, which is erased once the intent is
-- executed or cancelled and an hour after its deadline; signed_at stays.
ALTER TABLE transfers
    ADD signing text,
    ADD signature bytea,
    ADD signed_at timestamptz;

-- The deadline of a quote that was asked for without one holds for no intent that is signed.
ALTER TABLE quotes ADD default_deadline boolean NOT NULL DEFAULT false;
