-- Public JSON-RPC URLs of a chain, which wallets get to add it (EIP-3085); NULL for none. The version before writes none.
ALTER TABLE chains ADD COLUMN rpc_urls text[]
    CHECK (cardinality(rpc_urls) BETWEEN 1 AND 8 AND array_position(rpc_urls, NULL) IS NULL AND octet_length(array_to_string(rpc_urls, '')) <= 2048);
