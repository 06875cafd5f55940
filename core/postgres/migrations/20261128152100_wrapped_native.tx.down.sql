ALTER TABLE chains DROP wrapped_native;
