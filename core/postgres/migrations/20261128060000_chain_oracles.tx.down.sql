DROP TRIGGER chains_oracles ON chains;
DROP FUNCTION keep_chain_oracles();
DROP TABLE chain_oracles;
