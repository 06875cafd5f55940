-- The id of the event. It is NULL in rows of the release before, whose ids follow from the intent and the sequence, or from the data and
-- the position.
ALTER TABLE feed ADD COLUMN id uuid;
