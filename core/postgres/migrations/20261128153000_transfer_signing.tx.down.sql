ALTER TABLE quotes DROP default_deadline;
ALTER TABLE transfers DROP signed_at, DROP signature, DROP signing;
