-- The contracts of an intent's order: origin_settler is its input settler, destination_settler its output settler. The new columns are
-- NULL for a transfer, whose order expires with its deadline. The domains stay, unused, for the previous version.
ALTER TABLE transfers
    ADD deployment text,
    ADD input_oracle text,
    ADD output_oracle text,
    ADD expires timestamptz,
    ALTER origin_domain SET DEFAULT 0,
    ALTER destination_domain SET DEFAULT 0;
