-- Whether the signed order of an intent is handed to the solver of its quote, and the one attempt to: when it began, what the solver answered, and
-- when the solver is asked next what became of the order, NULL for never.
ALTER TABLE transfers
    ADD submit boolean NOT NULL DEFAULT false,
    ADD submitted_at timestamptz,
    ADD submission_status text,
    ADD submission_detail text,
    ADD submission_due_at timestamptz;
