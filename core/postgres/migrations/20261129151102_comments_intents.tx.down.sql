DO $$
DECLARE
    described record;
BEGIN
    FOR described IN SELECT objoid::regclass AS relation, attname FROM pg_description
        LEFT JOIN pg_attribute ON attrelid = objoid AND attnum = objsubid AND attnum > 0
        WHERE classoid = 'pg_class'::regclass AND objoid = ANY (ARRAY[
        'transfers', 'batches', 'transfer_updates', 'events', 'transactions', 'disputed_transactions', 'quotes']::regclass[])
    LOOP
        IF described.attname IS NULL THEN
            EXECUTE format('COMMENT ON TABLE %s IS NULL', described.relation);
        ELSE
            EXECUTE format('COMMENT ON COLUMN %s.%I IS NULL', described.relation, described.attname);
        END IF;
    END LOOP;
END $$;
