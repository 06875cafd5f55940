-- Every oracle that a chain ever had, as chain_settlers has the settlers: none of them may be sent tokens.
CREATE TABLE chain_oracles (
    chain_id text NOT NULL,
    address  text NOT NULL,
    PRIMARY KEY (chain_id, address)
);

CREATE FUNCTION keep_chain_oracles() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chain_oracles
        SELECT NEW.id, settlement ->> 'oracle' FROM jsonb_array_elements(NEW.settlements) AS settlement WHERE settlement ->> 'oracle' IS NOT NULL
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER chains_oracles AFTER INSERT OR UPDATE OF settlements ON chains FOR EACH ROW EXECUTE FUNCTION keep_chain_oracles();

INSERT INTO chain_oracles
    SELECT DISTINCT id, settlement ->> 'oracle' FROM chains, jsonb_array_elements(settlements) AS settlement WHERE settlement ->> 'oracle' IS NOT NULL;
