-- The deployments that execute orders from and to a chain, the preferred one first, each as chain.Settlement of core/intent/chain. domain
-- and settler_* stay, unused, for the previous version.
ALTER TABLE chains
    ADD settlements jsonb NOT NULL DEFAULT '[]',
    ALTER domain SET DEFAULT 0;

-- Every input and output settler that a chain ever had is followed. What is no array of objects with both is refused.
CREATE FUNCTION keep_chain_settlers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chain_settlers
        SELECT NEW.id, address FROM jsonb_array_elements(NEW.settlements) AS settlement,
            LATERAL (VALUES (settlement ->> 'inputSettler'), (settlement ->> 'outputSettler')) AS settlers (address)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER chains_settlements AFTER INSERT OR UPDATE OF settlements ON chains FOR EACH ROW EXECUTE FUNCTION keep_chain_settlers();
