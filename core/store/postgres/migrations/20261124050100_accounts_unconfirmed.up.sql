-- Accounts of sign-ups whose address nobody has verified, by age, to remove those that nobody has entered.
CREATE INDEX CONCURRENTLY IF NOT EXISTS accounts_unconfirmed ON accounts (created_at)
    WHERE verification_required AND email_verified_at IS NULL AND deleted_at IS NULL;
