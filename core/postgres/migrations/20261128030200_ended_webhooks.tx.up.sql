-- The endpoints of accounts that ended before the trigger accounts_ended deleted them.
DELETE FROM webhooks WHERE id = ANY (ARRAY(
    SELECT webhooks.id FROM webhooks JOIN accounts ON accounts.id = webhooks.account_id WHERE accounts.deleted_at IS NOT NULL
    ORDER BY webhooks.id FOR UPDATE OF webhooks));
