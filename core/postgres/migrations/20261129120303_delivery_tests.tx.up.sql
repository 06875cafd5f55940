-- Deliveries of tests, whose events are not in the feed. Of webhook.test every one is, also those of the version before.
ALTER TABLE deliveries ADD test boolean NOT NULL DEFAULT false;
