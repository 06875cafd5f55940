ALTER TABLE transfers DROP batch_id;
DROP TABLE batches;
