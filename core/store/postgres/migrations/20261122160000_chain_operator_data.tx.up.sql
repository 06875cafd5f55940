-- When a block of a chain counts as permanent, how often the chain has a new one, and how its settler's orders are encoded. The
-- defaults are those of core/chain: the version before writes none of these columns.
ALTER TABLE chains
    ADD COLUMN confirmations  integer NOT NULL DEFAULT 12 CHECK (confirmations BETWEEN 1 AND 10000),
    ADD COLUMN finality       text NOT NULL DEFAULT 'depth' CHECK (finality IN ('depth', 'safe', 'finalized')),
    ADD COLUMN block_time_ms  integer NOT NULL DEFAULT 12000 CHECK (block_time_ms BETWEEN 50 AND 600000),
    ADD COLUMN settler_scheme text NOT NULL DEFAULT 'erc7683-v1/OrderData' CHECK (settler_scheme = 'erc7683-v1/OrderData');
