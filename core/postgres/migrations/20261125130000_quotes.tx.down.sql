ALTER TABLE transfers DROP quote_id, DROP quote_provider, DROP quote_expires_at;
DROP TABLE quotes;
