ALTER TABLE chains DROP COLUMN rpc_urls;
