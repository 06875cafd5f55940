-- The newest block whose events have been read since the last reorganization, with its time, and the time up to which each block
-- was read twice. The version before does not write them: a null is the cursor, or an unknown time.
ALTER TABLE watched_chains
    ADD COLUMN read_block bigint,
    ADD COLUMN read_block_time timestamptz,
    ADD COLUMN complete_until timestamptz;
