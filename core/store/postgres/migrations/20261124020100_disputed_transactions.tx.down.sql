DROP TABLE disputed_transactions;
