-- Whether the signed order of an intent is handed to the solver of its quote, and the one attempt to: when it began, what the solver answered, and
-- when the solver is asked next what became of the order, NULL for never. NOT VALID: every row there has NULL, and reading them all would hold up
-- writes.
ALTER TABLE transfers
    ADD submit boolean NOT NULL DEFAULT false,
    ADD submitted_at timestamptz,
    ADD submission_status text,
    ADD submission_detail text,
    ADD submission_due_at timestamptz,
    ADD CONSTRAINT transfers_submit_check CHECK (NOT submit OR signing IS NOT NULL AND quote_provider IS NOT NULL) NOT VALID,
    ADD CONSTRAINT transfers_submission_check CHECK (
        CASE WHEN submitted_at IS NULL THEN submission_status IS NULL AND submission_detail IS NULL AND submission_due_at IS NULL
             ELSE submit AND submission_status IS NOT NULL END) NOT VALID;
