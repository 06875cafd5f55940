ALTER TABLE deliveries DROP test;
