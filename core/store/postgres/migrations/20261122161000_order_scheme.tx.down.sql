ALTER TABLE transfers DROP COLUMN order_scheme;
