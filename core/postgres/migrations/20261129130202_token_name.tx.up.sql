-- What people call the token, by the list that it was imported from; NULL where that had no name.
ALTER TABLE tokens ADD name text;
