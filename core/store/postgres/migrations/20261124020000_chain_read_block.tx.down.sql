ALTER TABLE watched_chains
    DROP COLUMN read_block,
    DROP COLUMN read_block_time,
    DROP COLUMN complete_until;
