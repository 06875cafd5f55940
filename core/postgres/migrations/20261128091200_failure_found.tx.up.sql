-- What a failed attempt has instead of the intent's effect: the hash of the transaction that replaced it, the id of the other order that it
-- opened, or the other amount that it paid. NULL where nothing of the kind is known. An event keeps what its attempt had then.
ALTER TABLE transactions ADD COLUMN found text;
ALTER TABLE events ADD COLUMN found text;
