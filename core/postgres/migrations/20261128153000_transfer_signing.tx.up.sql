-- How the user signs an intent, NULL for one whose user sends a transaction, and the last valid signature, which is erased once the intent is
-- executed or cancelled and an hour after its deadline; signed_at stays. NOT VALID: every row there has NULL, and reading them all would hold up
-- writes.
ALTER TABLE transfers
    ADD signing text,
    ADD signature bytea,
    ADD signed_at timestamptz,
    ADD CONSTRAINT transfers_signing_check CHECK (signing IN ('permit2', 'erc3009')) NOT VALID,
    ADD CONSTRAINT transfers_signature_check CHECK (signature IS NULL OR signing IS NOT NULL AND signed_at IS NOT NULL) NOT VALID;

-- The deadline of a quote that was asked for without one holds for no intent that is signed.
ALTER TABLE quotes ADD default_deadline boolean NOT NULL DEFAULT false;
