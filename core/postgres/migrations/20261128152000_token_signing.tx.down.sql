ALTER TABLE tokens
    DROP erc3009,
    DROP eip2612,
    DROP fee_on_transfer;
