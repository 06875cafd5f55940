ALTER TABLE chains DROP COLUMN confirmations, DROP COLUMN finality, DROP COLUMN block_time_ms, DROP COLUMN settler_scheme;
