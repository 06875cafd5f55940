-- A restricted key would be able to do everything from anywhere, so it is disabled.
UPDATE api_keys SET enabled = false
WHERE cardinality(networks) > 0 OR NOT scopes @> '{intents:read,intents:write,webhooks}'::text[];

CREATE OR REPLACE TRIGGER api_keys_changed
    AFTER INSERT OR DELETE OR UPDATE OF account_id, hash, environment, enabled, expires_at, deleted_at,
        limit_requests, limit_period_seconds, limit_bucket
    ON api_keys FOR EACH ROW EXECUTE FUNCTION note_key_change();

ALTER TABLE api_keys DROP COLUMN scopes, DROP COLUMN networks;
