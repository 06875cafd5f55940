DROP TABLE leases, webhook_quotas, webhook_requests, deliveries, webhooks, feed_pruned, feed_state, feed, chain_activity, chain_anchors,
    watched_chains, disputed_transactions, transactions, events, transfers, chain_settlers, registry_version, tokens, chains, usage_reports,
    key_usage, key_changes, api_keys, audit_log, invitations, members, mails, link_tokens, reset_tokens, nonces, identities, sessions, accounts;
DROP FUNCTION note_feed_pruned(), keep_chain_settler(), bump_registry_version(), note_account_keys_change(), note_key_change(),
    refuse_audit_change(), end_memberships(), add_holder();
