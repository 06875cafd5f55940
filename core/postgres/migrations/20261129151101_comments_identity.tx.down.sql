DO $$
DECLARE
    described record;
BEGIN
    FOR described IN SELECT objoid::regclass AS relation, attname FROM pg_description
        LEFT JOIN pg_attribute ON attrelid = objoid AND attnum = objsubid AND attnum > 0
        WHERE classoid = 'pg_class'::regclass AND objoid = ANY (ARRAY[
        'accounts', 'sessions', 'members', 'invitations', 'identities', 'passkeys', 'sign_in_challenges', 'nonces',
        'reset_tokens', 'link_tokens', 'mails', 'api_keys', 'key_changes', 'key_usage', 'usage_reports', 'audit_log']::regclass[])
    LOOP
        IF described.attname IS NULL THEN
            EXECUTE format('COMMENT ON TABLE %s IS NULL', described.relation);
        ELSE
            EXECUTE format('COMMENT ON COLUMN %s.%I IS NULL', described.relation, described.attname);
        END IF;
    END LOOP;
END $$;
