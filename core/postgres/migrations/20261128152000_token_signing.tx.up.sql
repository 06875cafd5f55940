-- What signatures of a token's holder are made with, NULL where it takes none or nobody has recorded it: the EIP-712 domain and the form of its
-- ERC-3009 functions, {"name", "version", "form"}, and the domain of its EIP-2612 permits, {"name", "version"}.
ALTER TABLE tokens
    ADD erc3009 jsonb,
    ADD eip2612 jsonb,
    ADD fee_on_transfer boolean NOT NULL DEFAULT false;
