-- A sign-up to an address whose account waits for its link brings a name and a password of its own. They are the mail's, and of the link
-- in it: whichever link is opened decides which of them the account gets. NULL in all other mails and links, and those of the version
-- before, whose links verify the account with the password that it has.
ALTER TABLE mails ADD COLUMN name text, ADD COLUMN password_hash text;
ALTER TABLE link_tokens ADD COLUMN name text, ADD COLUMN password_hash text;
