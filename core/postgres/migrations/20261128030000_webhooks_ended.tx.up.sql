-- What ends an endpoint ends its queue in the same transaction, whoever deletes it: the sweep for due deliveries reads one entry of
-- deliveries_due for each endpoint that has one. The longest queue is cut at 5,000, for the time that a statement may take; what is left of
-- it is pruned within the hour, with the deliveries that have ended. Rows are locked in the order in which the results of attempts lock them.
CREATE FUNCTION end_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM deliveries WHERE webhook_id = OLD.id AND event_id = ANY (ARRAY(
        SELECT event_id FROM deliveries WHERE webhook_id = OLD.id AND event_id = ANY (ARRAY(
            SELECT event_id FROM deliveries WHERE webhook_id = OLD.id AND status = 'pending' ORDER BY next_attempt_at LIMIT 5000))
        ORDER BY event_id FOR UPDATE));
    RETURN NULL;
END $$;

CREATE TRIGGER webhooks_ended AFTER DELETE ON webhooks FOR EACH ROW EXECUTE FUNCTION end_deliveries();

-- What ends an account ends its endpoints, which nobody can see or enable any more.
CREATE OR REPLACE FUNCTION end_memberships() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM members WHERE account_id = NEW.id OR person_id = NEW.id;
    DELETE FROM invitations WHERE account_id = NEW.id OR inviter_id = NEW.id;
    DELETE FROM webhooks WHERE id = ANY (ARRAY(SELECT id FROM webhooks WHERE account_id = NEW.id ORDER BY id FOR UPDATE));
    RETURN NULL;
END $$;
