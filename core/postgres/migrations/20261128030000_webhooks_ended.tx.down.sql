CREATE OR REPLACE FUNCTION end_memberships() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM members WHERE account_id = NEW.id OR person_id = NEW.id;
    DELETE FROM invitations WHERE account_id = NEW.id OR inviter_id = NEW.id;
    RETURN NULL;
END $$;

DROP TRIGGER webhooks_ended ON webhooks;
DROP FUNCTION end_deliveries();
