DO $$
DECLARE
    described regclass;
BEGIN
    FOR described IN SELECT objoid FROM pg_description JOIN pg_class ON pg_class.oid = objoid
        WHERE classoid = 'pg_class'::regclass AND relkind IN ('i', 'I') AND relnamespace = 'public'::regnamespace
    LOOP
        EXECUTE format('COMMENT ON INDEX %s IS NULL', described);
    END LOOP;
END $$;
