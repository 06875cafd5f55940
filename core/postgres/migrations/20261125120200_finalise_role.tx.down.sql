DELETE FROM transactions WHERE role = 'finalise';
ALTER TABLE transactions
    DROP CONSTRAINT transactions_role_check,
    ADD CONSTRAINT transactions_role_check CHECK (role IN ('send', 'open', 'fill', 'settle', 'refund'));
