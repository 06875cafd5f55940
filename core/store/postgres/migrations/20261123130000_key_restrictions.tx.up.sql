-- What a key may do, and the networks that it may be used from, none for any. The previous release names neither, so its keys may do
-- everything from anywhere.
ALTER TABLE api_keys
    ADD COLUMN scopes text[] NOT NULL DEFAULT '{intents:read,intents:write,webhooks}',
    ADD COLUMN networks cidr[] NOT NULL DEFAULT '{}',
    ADD CONSTRAINT api_keys_scopes CHECK (cardinality(scopes) > 0 AND scopes <@ '{intents:read,intents:write,webhooks}'::text[]),
    ADD CONSTRAINT api_keys_networks CHECK (cardinality(networks) <= 32 AND array_position(networks, NULL) IS NULL);

CREATE OR REPLACE TRIGGER api_keys_changed
    AFTER INSERT OR DELETE OR UPDATE OF account_id, hash, environment, enabled, expires_at, deleted_at,
        limit_requests, limit_period_seconds, limit_bucket, scopes, networks
    ON api_keys FOR EACH ROW EXECUTE FUNCTION note_key_change();
