-- An account has been entered if its audit log still has a sign-in, if it has anything that only a signed-in person makes, or if nobody
-- had to confirm its address before signing in.
UPDATE accounts SET entered_at = coalesce((SELECT min(occurred_at) FROM audit_log WHERE account_id = accounts.id AND action = 'signed_in'), created_at)
    WHERE NOT verification_required OR email_verified_at IS NOT NULL
        OR EXISTS (SELECT FROM audit_log WHERE account_id = accounts.id AND action = 'signed_in')
        OR EXISTS (SELECT FROM sessions WHERE account_id = accounts.id)
        OR EXISTS (SELECT FROM api_keys WHERE account_id = accounts.id)
        OR EXISTS (SELECT FROM identities WHERE account_id = accounts.id)
        OR EXISTS (SELECT FROM transfers WHERE account_id = accounts.id)
        OR EXISTS (SELECT FROM webhooks WHERE account_id = accounts.id);
