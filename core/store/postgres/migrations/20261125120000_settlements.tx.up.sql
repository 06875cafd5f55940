-- Orders of the scheme oif-v1/StandardOrder. The columns of the scheme before stay, unused, while a version that fills them may run:
-- chains.domain and chains.settler_*, transfers.origin_domain and destination_domain.

-- The deployments that execute orders from and to a chain, the preferred first, as core/intent/chain.Settlement.
ALTER TABLE chains
    ADD settlements jsonb NOT NULL DEFAULT '[]',
    ALTER domain SET DEFAULT 0;

-- Every settler that a chain ever had is followed, those that open orders as those that fill them.
CREATE FUNCTION keep_chain_settlers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chain_settlers
        SELECT NEW.id, address FROM jsonb_array_elements(NEW.settlements) AS settlement,
            LATERAL (VALUES (settlement ->> 'inputSettler'), (settlement ->> 'outputSettler')) AS settlers (address)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER chains_settlements AFTER INSERT OR UPDATE OF settlements ON chains FOR EACH ROW EXECUTE FUNCTION keep_chain_settlers();

-- The contracts of an intent's order: origin_settler is its input settler, destination_settler its output settler. The new columns are
-- NULL for a transfer, whose order expires with its deadline.
ALTER TABLE transfers
    ADD deployment text,
    ADD input_oracle text,
    ADD output_oracle text,
    ADD expires timestamptz,
    ALTER origin_domain SET DEFAULT 0,
    ALTER destination_domain SET DEFAULT 0;

-- The input settler's event that an order's solver was paid. NOT VALID: the rows there keep to the stricter check before.
ALTER TABLE transactions
    DROP CONSTRAINT transactions_role_check,
    ADD CONSTRAINT transactions_role_check CHECK (role IN ('send', 'open', 'fill', 'settle', 'finalise', 'refund')) NOT VALID;
