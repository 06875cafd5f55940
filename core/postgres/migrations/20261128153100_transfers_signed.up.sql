-- Intents with a signature, by their deadlines: those to erase, and the signed transfers to look for on chain.
CREATE INDEX CONCURRENTLY transfers_signed ON transfers (deadline) WHERE signature IS NOT NULL;
