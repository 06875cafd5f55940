DROP TABLE transfer_updates;
