-- The turns of the accounts whose attempts were never compared with other providers. transactions_unconfirmed stays for the previous version.
CREATE INDEX CONCURRENTLY transactions_sent_turns ON transactions (chain_id, block_number, account_id)
    WHERE block_number IS NOT NULL AND confirmed_at IS NULL AND state <> 'unsupported' AND compare_at IS NULL AND role IN ('send', 'open');
