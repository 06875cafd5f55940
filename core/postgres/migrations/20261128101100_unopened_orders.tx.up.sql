-- Up to which deadline the orders of a chain without a transaction were compared with their settlers, NULL for none. They expire after that.
ALTER TABLE watched_chains ADD COLUMN unopened_until timestamptz;
