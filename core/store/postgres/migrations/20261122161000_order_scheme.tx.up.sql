-- How an intent's order is encoded and identified. The constant default rewrites no row, and the version before, which names no
-- scheme, goes on inserting intents of the only one it knows.
ALTER TABLE transfers ADD COLUMN order_scheme text NOT NULL DEFAULT 'erc7683-v1/OrderData';
