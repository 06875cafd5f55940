-- The newest position of each feed that was removed: a cursor before it has missed events.
CREATE TABLE feed_pruned (
    account_id  uuid NOT NULL,
    environment text NOT NULL,
    position    bigint NOT NULL,
    PRIMARY KEY (account_id, environment)
);

-- The newest position that may have been removed before feed_pruned existed.
ALTER TABLE feed_state ADD COLUMN untracked_to bigint NOT NULL DEFAULT 0;
UPDATE feed_state SET untracked_to = pruned_to;

-- A trigger, as the release before removes rows too.
CREATE FUNCTION note_feed_pruned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO feed_pruned AS p (account_id, environment, position)
        SELECT account_id, environment, max(position) FROM removed GROUP BY account_id, environment ORDER BY account_id, environment
        ON CONFLICT (account_id, environment) DO UPDATE SET position = greatest(p.position, excluded.position);
    RETURN NULL;
END $$;

CREATE TRIGGER feed_pruned AFTER DELETE ON feed REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION note_feed_pruned();
