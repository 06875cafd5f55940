ALTER TABLE chains DROP explorer;
