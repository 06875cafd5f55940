-- The base URL of the chain's block explorer, whose paths are those of EIP-3091; NULL for none.
ALTER TABLE chains ADD explorer text;
