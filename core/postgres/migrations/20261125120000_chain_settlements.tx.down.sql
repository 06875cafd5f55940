DROP TRIGGER chains_settlements ON chains;
DROP FUNCTION keep_chain_settlers();
ALTER TABLE chains DROP settlements, ALTER domain DROP DEFAULT;
