DELETE FROM transactions WHERE role = 'finalise';
ALTER TABLE transactions
    DROP CONSTRAINT transactions_role_check,
    ADD CONSTRAINT transactions_role_check CHECK (role IN ('send', 'open', 'fill', 'settle', 'refund'));
ALTER TABLE transfers
    DROP deployment, DROP input_oracle, DROP output_oracle, DROP expires,
    ALTER origin_domain DROP DEFAULT, ALTER destination_domain DROP DEFAULT;
DROP TRIGGER chains_settlements ON chains;
DROP FUNCTION keep_chain_settlers();
ALTER TABLE chains DROP settlements, ALTER domain DROP DEFAULT;
