-- The unused quotes that retention removes a day after their end.
CREATE INDEX CONCURRENTLY quotes_ended ON quotes (expires_at) WHERE transfer_id IS NULL;
