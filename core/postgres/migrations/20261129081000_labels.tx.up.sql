-- The client's own labels of an intent, NULL for none: a JSON object of texts in the order of its keys without whitespace, so that equal labels are
-- equal texts.
ALTER TABLE transfers ADD labels text;
