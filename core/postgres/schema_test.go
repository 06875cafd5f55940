package postgres_test

import (
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
)

// fillTables puts a row into every table.
func fillTables(t *testing.T) *rooms.Rooms {
	t.Helper()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := pgtest.SignUp(t, store, "owner@example.com")
	pgtest.InsertKey(t, store, owner.ID)
	pgtest.Exec(t, store, `INSERT INTO sessions SELECT gen_random_uuid(), sha256('token'), id, '', '', now(), now(), now() FROM accounts`)
	pgtest.Exec(t, store, `INSERT INTO identities SELECT 'https://id.example.com', '7', id, now() FROM accounts`)
	pgtest.Exec(t, store, `INSERT INTO nonces VALUES (sha256('nonce'), now())`)
	pgtest.Exec(t, store, `INSERT INTO reset_tokens SELECT sha256('token'), id, now() FROM accounts`)
	pgtest.Exec(t, store, `INSERT INTO invitations SELECT gen_random_uuid(), id, id, 'new@example.com', 'viewer', sha256('token'), false, now(), now() FROM accounts`)
	pgtest.Exec(t, store, `INSERT INTO mails VALUES (gen_random_uuid(), 'reset_password', 'owner@example.com', 0, now(), now())`)
	pgtest.Exec(t, store, `INSERT INTO key_usage SELECT account_id, '2026-11-21 12:00Z', id, 0, 0, 0 FROM api_keys`)
	pgtest.Exec(t, store, `INSERT INTO usage_reports VALUES (gen_random_uuid(), now())`)
	intent := pgtest.NewIntent(t, known, owner.ID, pgtest.TransferBody)
	if _, err := store.Intents.InsertTransfer(t.Context(), intent, pgtest.Idempotent(t, "once", pgtest.TransferBody)); err != nil {
		t.Fatal(err)
	}
	return store
}

// replacedTransaction is a transaction, up to its role.
const replacedTransaction = `INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, seen_at)
	VALUES (gen_random_uuid(), gen_random_uuid(), 'eip155:1', sha256('hash'), `

func TestSchema_Refuses(t *testing.T) {
	t.Parallel()
	store := fillTables(t)
	for _, c := range []struct{ want, statement string }{
		{pgtest.Check + "accounts_name_check", `UPDATE accounts SET name = ''`},
		{pgtest.Check + "accounts_name_check", `UPDATE accounts SET name = repeat('n', 129)`},
		{pgtest.Check + "accounts_email_check", `UPDATE accounts SET email = 'Owner@example.com'`},
		{pgtest.Check + "accounts_email_check", `UPDATE accounts SET email = repeat('e', 255)`},
		{pgtest.Unique + "accounts_email", `INSERT INTO accounts SELECT gen_random_uuid(), name, email, '', NULL, NULL, now(), now() FROM accounts`},
		{pgtest.Unique + "accounts_email", `INSERT INTO accounts SELECT gen_random_uuid(), name, email, '', now(), NULL, now(), now() FROM accounts`},
		{pgtest.Unique + "accounts_pkey", `INSERT INTO accounts SELECT id, name, 'other@example.com', '', NULL, NULL, now(), now() FROM accounts`},
		{pgtest.Foreign + "sessions_account_id_fkey", `DELETE FROM accounts`},

		{pgtest.Check + "sessions_token_hash_check", `UPDATE sessions SET token_hash = 'short'`},
		{pgtest.Unique + "sessions_token_hash_key", `INSERT INTO sessions SELECT gen_random_uuid(), token_hash, account_id, '', '', now(), now(), now() FROM sessions`},
		{pgtest.Foreign + "sessions_account_id_fkey", `UPDATE sessions SET account_id = gen_random_uuid()`},
		{pgtest.NotNull, `UPDATE sessions SET expires_at = NULL`},

		{pgtest.Check + "accounts_limit", `UPDATE accounts SET limit_requests = 1`},
		{pgtest.Check + "accounts_limit", `UPDATE accounts SET limit_requests = 0, limit_period_seconds = 1`},
		{pgtest.Check + "accounts_limit", `UPDATE accounts SET limit_requests = 1, limit_period_seconds = 0`},

		{pgtest.Check + "api_keys_name_check", `UPDATE api_keys SET name = ''`},
		{pgtest.Check + "api_keys_name_check", `UPDATE api_keys SET name = repeat('n', 65)`},
		{pgtest.Check + "api_keys_hash_check", `UPDATE api_keys SET hash = 'short'`},
		{pgtest.Unique + "api_keys_hash_key", `INSERT INTO api_keys SELECT made.* FROM api_keys k, jsonb_populate_record(k, jsonb_build_object('id', gen_random_uuid())) AS made`},
		{pgtest.Check + "api_keys_start_check", `UPDATE api_keys SET start = 'sk_test_abc'`},
		{pgtest.Check + "api_keys_check", `UPDATE api_keys SET environment = 'live'`},
		{pgtest.Check + "api_keys_check", `UPDATE api_keys SET start = 'skxtestxabcd'`},
		{pgtest.Check + "api_keys_environment_check", `UPDATE api_keys SET environment = 'main', start = 'sk_live_abcd'`},
		{pgtest.Check + "api_keys_limit_requests_check", `UPDATE api_keys SET limit_requests = 0`},
		{pgtest.Check + "api_keys_limit_period_seconds_check", `UPDATE api_keys SET limit_period_seconds = 0`},
		{pgtest.Foreign + "api_keys_account_id_fkey", `UPDATE api_keys SET account_id = gen_random_uuid()`},
		{pgtest.NotNull, `UPDATE api_keys SET enabled = NULL`},
		{pgtest.NotNull, `UPDATE api_keys SET limit_bucket = NULL`},
		{pgtest.Check + "api_keys_rotated", `UPDATE api_keys SET rotated_at = now()`},
		{pgtest.Check + "api_keys_scopes", `UPDATE api_keys SET scopes = '{}'`},
		{pgtest.Check + "api_keys_scopes", `UPDATE api_keys SET scopes = '{intents:delete}'`},
		{pgtest.Check + "api_keys_scopes", `UPDATE api_keys SET scopes = '{webhooks,NULL}'`},
		{pgtest.NotNull, `UPDATE api_keys SET scopes = NULL`},
		{pgtest.NotNull, `UPDATE api_keys SET networks = NULL`},
		{pgtest.Check + "api_keys_networks", `UPDATE api_keys SET networks = '{NULL}'`},
		{pgtest.Check + "api_keys_networks", `UPDATE api_keys SET networks = (SELECT array_agg(('10.0.0.' || n)::cidr) FROM generate_series(1, 33) AS n)`},
		{"22P02 ", `UPDATE api_keys SET networks = '{10.0.0.1/8}'`}, // by the type
		{"22P02 ", `UPDATE api_keys SET networks = '{any}'`},

		{pgtest.Unique + "identities_pkey", `INSERT INTO identities SELECT * FROM identities`},
		{pgtest.Foreign + "identities_account_id_fkey", `UPDATE identities SET account_id = gen_random_uuid()`},
		{pgtest.Check + "identities_issuer_check", `UPDATE identities SET issuer = ''`},
		{pgtest.Check + "identities_subject_check", `UPDATE identities SET subject = ''`},
		{pgtest.Check + "identities_subject_check", `UPDATE identities SET subject = repeat('s', 256)`},
		{pgtest.Check + "identities_wallet", `UPDATE identities SET issuer = 'eip155', subject = '0x' || repeat('A', 40)`},
		{pgtest.Check + "identities_smart_account", `UPDATE identities SET issuer = 'eip155:1', subject = '0x' || repeat('A', 40)`},
		{pgtest.Check + "identities_smart_account", `UPDATE identities SET issuer = 'eip155:01', subject = '0x' || repeat('a', 40)`},
		{pgtest.Check + "nonces_hash_check", `UPDATE nonces SET hash = 'short'`},
		{pgtest.Unique + "nonces_pkey", `INSERT INTO nonces SELECT * FROM nonces`},
		{pgtest.Check + "reset_tokens_hash_check", `UPDATE reset_tokens SET hash = 'short'`},
		{pgtest.Unique + "reset_tokens_pkey", `INSERT INTO reset_tokens SELECT * FROM reset_tokens`},
		{pgtest.Foreign + "reset_tokens_account_id_fkey", `UPDATE reset_tokens SET account_id = gen_random_uuid()`},
		{pgtest.Check + "accounts_shared", `UPDATE accounts SET shared = true`}, // it has a password
		{pgtest.Check + "members_role_check", `INSERT INTO members SELECT account_id, gen_random_uuid(), 'admin', now() FROM members`},
		{pgtest.Check + "members_holder", `UPDATE members SET role = 'viewer'`},
		{pgtest.Unique + "members_pkey", `INSERT INTO members SELECT * FROM members`},
		{pgtest.Foreign + "members_person_id_fkey", `INSERT INTO members SELECT account_id, gen_random_uuid(), 'viewer', now() FROM members`},
		{pgtest.Check + "invitations_role_check", `UPDATE invitations SET role = ''`},
		{pgtest.Check + "invitations_email_check", `UPDATE invitations SET email = 'New@example.com'`},
		{pgtest.Check + "invitations_token_hash_check", `UPDATE invitations SET token_hash = 'short'`},
		{pgtest.Unique + "invitations_once", `INSERT INTO invitations SELECT gen_random_uuid(), account_id, inviter_id, email, role, NULL, true, now(), now() FROM invitations`},
		{pgtest.Unique + "invitations_token_hash_key", `INSERT INTO invitations SELECT gen_random_uuid(), account_id, inviter_id, 'x@example.com', role, token_hash, true, now(), now() FROM invitations`},
		{pgtest.Check + "mails_recipient_check", `UPDATE mails SET recipient = repeat('r', 255)`},
		{pgtest.Check + "mails_attempts_check", `UPDATE mails SET attempts = -1`},
		{pgtest.Unique + "mails_pkey", `INSERT INTO mails SELECT * FROM mails`},

		{pgtest.Check + "audit_log_actor_check", `INSERT INTO audit_log SELECT gen_random_uuid(), id, now(), 'nobody', 'signed_in', NULL, '', '', '', '' FROM accounts`},
		{pgtest.Check + "audit_log_action_check", `INSERT INTO audit_log SELECT gen_random_uuid(), id, now(), 'owner', 'danced', NULL, '', '', '', '' FROM accounts`},
		{pgtest.Check + "audit_log_key", `INSERT INTO audit_log SELECT gen_random_uuid(), id, now(), 'owner', 'key_created', NULL, '', '', '', '' FROM accounts`},
		{pgtest.Check + "audit_log_key", `INSERT INTO audit_log SELECT gen_random_uuid(), id, now(), 'owner', 'signed_in', id, '', '', '', '' FROM accounts`},
		{pgtest.Unique + "audit_log_pkey", `INSERT INTO audit_log SELECT * FROM audit_log`},
		{pgtest.Appends, `UPDATE audit_log SET detail = 'nothing to see'`},
		{pgtest.Appends, `UPDATE audit_log SET last_at = now(), last_detail = 'nothing to see'`},
		{pgtest.Appends, `UPDATE audit_log SET repeats = repeats + 1`},                                        // of what is recorded each time
		{pgtest.Appends, `UPDATE audit_log SET key_name = '', detail = '', ip_address = '', user_agent = ''`}, // the account has not ended
		{pgtest.Appends, `DELETE FROM audit_log`},
		{pgtest.Check + "accounts_erased", `UPDATE accounts SET erased_at = now()`},
		{pgtest.Appends, `TRUNCATE audit_log`},

		{pgtest.Check + "key_usage_accepted_check", `UPDATE key_usage SET accepted = -1`},
		{pgtest.Check + "key_usage_limited_check", `UPDATE key_usage SET limited = -1`},
		{pgtest.Check + "key_usage_refused_check", `UPDATE key_usage SET refused = -1`},
		{pgtest.Check + "key_usage_minute_check", `UPDATE key_usage SET minute = minute + interval '1 s'`},
		{pgtest.Check + "key_usage_minute_check", `UPDATE key_usage SET minute = minute + interval '1 us'`},
		{pgtest.Unique + "key_usage_pkey", `INSERT INTO key_usage SELECT * FROM key_usage`},
		{pgtest.Unique + "usage_reports_pkey", `INSERT INTO usage_reports SELECT * FROM usage_reports`},

		{pgtest.Check + "chains_id_check", `INSERT INTO chains VALUES ('eip155', 'n', 'test', 'c', 'C', 18, 1)`},
		{pgtest.Check + "chains_id_check", `INSERT INTO chains VALUES ('EIP155:1', 'n', 'test', 'c', 'C', 18, 1)`},
		{pgtest.Check + "chains_id_check", `INSERT INTO chains VALUES (E'eip155:7\n', 'n', 'test', 'c', 'C', 18, 1)`},
		{pgtest.Unique + "chains_pkey", `INSERT INTO chains VALUES ('eip155:1', 'n', 'test', 'c', 'C', 18, 1)`},
		{pgtest.Check + "chains_environment_check", `UPDATE chains SET environment = 'Test'`},
		{pgtest.NotNull, `UPDATE chains SET environment = NULL`},
		{pgtest.Check + "chains_currency_decimals_check", `UPDATE chains SET currency_decimals = 256`},
		{pgtest.Check + "chains_domain_check", `UPDATE chains SET domain = 4294967296`},
		{pgtest.Check + "chains_domain_check", `UPDATE chains SET domain = -1`},
		{pgtest.Check + "chains_check", `UPDATE chains SET settler_address = NULL, settler_same_chain = true`},
		{pgtest.Check + "chains_confirmations_check", `UPDATE chains SET confirmations = 0`},
		{pgtest.Check + "chains_confirmations_check", `UPDATE chains SET confirmations = 10001`},
		{pgtest.NotNull, `UPDATE chains SET confirmations = NULL`},
		{pgtest.Check + "chains_finality_check", `UPDATE chains SET finality = 'latest'`},
		{pgtest.NotNull, `UPDATE chains SET finality = NULL`},
		{pgtest.Check + "chains_block_time_ms_check", `UPDATE chains SET block_time_ms = 49`},
		{pgtest.Check + "chains_block_time_ms_check", `UPDATE chains SET block_time_ms = 600001`},
		{pgtest.NotNull, `UPDATE chains SET block_time_ms = NULL`},
		{pgtest.Check + "chains_settler_scheme_check", `UPDATE chains SET settler_scheme = 'StandardOrder'`},
		{pgtest.NotNull, `UPDATE chains SET settler_scheme = NULL`},
		{pgtest.NotNull, `UPDATE chains SET settlements = NULL`},
		{"22023 ", `UPDATE chains SET settlements = '{}'`}, // by the trigger, for which it must be an array
		{pgtest.NotNull, `UPDATE chains SET settlements = '[{"inputSettler": "0x1"}]'`},
		{pgtest.Check + "chains_rpc_urls_check", `UPDATE chains SET rpc_urls = '{}'`},
		{pgtest.Check + "chains_rpc_urls_check", `UPDATE chains SET rpc_urls = ARRAY['https://a', NULL]`},
		{pgtest.Check + "chains_rpc_urls_check", `UPDATE chains SET rpc_urls = array_fill('https://a'::text, '{9}')`},
		{pgtest.Check + "chains_rpc_urls_check", `UPDATE chains SET rpc_urls = ARRAY[repeat('a', 2049)]`},
		{pgtest.Foreign + "tokens_chain_id_fkey", `DELETE FROM chains WHERE id = 'eip155:1'`},
		{pgtest.Foreign + "tokens_chain_id_fkey", `INSERT INTO tokens VALUES ('eip155:7', '0x', 'S', 1)`},
		{pgtest.Unique + "tokens_pkey", `INSERT INTO tokens SELECT chain_id, address, 'S', 1 FROM tokens LIMIT 1`},
		{pgtest.Check + "tokens_decimals_check", `UPDATE tokens SET decimals = -1`},
		{pgtest.Unique + "registry_version_pkey", `INSERT INTO registry_version (version) VALUES (2)`},
		{pgtest.Check + "registry_version_only_row_check", `INSERT INTO registry_version VALUES (false, 2)`},

		{pgtest.Check + "transfers_status_check", `UPDATE transfers SET status = 'done'`},
		{pgtest.Check + "transfers_type_check", `UPDATE transfers SET type = 'loan', source_token = 'x', origin_settler = 's'`},
		{pgtest.Check + "transfers_order_id_check", `UPDATE transfers SET order_id = 'short'`},
		{pgtest.Unique + "transfers_order_id_key", `INSERT INTO transfers SELECT made.* FROM transfers i, jsonb_populate_record(i,
			jsonb_build_object('id', gen_random_uuid(), 'idempotency_key', null)) AS made`},
		{pgtest.Unique + "transfers_idempotency", `INSERT INTO transfers SELECT made.* FROM transfers i, jsonb_populate_record(i,
			jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256('other'))) AS made`},
		{pgtest.Check + "transfers_source_amount_check", pgtest.Swap + `, source_amount = 0`},
		{pgtest.Check + "transfers_source_amount_check", pgtest.Swap + `, source_amount = 2::numeric ^ 256`},
		{pgtest.Check + "transfers_destination_amount_check", pgtest.Swap + `, destination_amount = 0`},
		{pgtest.Check + "transfers_destination_amount_check", pgtest.Swap + `, destination_amount = 2::numeric ^ 256`},
		{pgtest.Check + "transfers_transfer_keeps_amount", `UPDATE transfers SET destination_amount = 4`},
		{pgtest.Check + "transfers_bridge_crosses", `UPDATE transfers SET type = 'bridge', origin_settler = 's', destination_settler = 's'`},
		{pgtest.Check + "transfers_bridge_crosses", `UPDATE transfers SET destination_chain = 'eip155:1'`},
		{pgtest.Check + "transfers_transfer_keeps_token", `UPDATE transfers SET type = 'swap', origin_settler = 's', destination_settler = 's'`},
		{pgtest.Check + "transfers_transfer_keeps_token", `UPDATE transfers SET destination_token = 'other'`},
		{pgtest.Check + "transfers_settled", `UPDATE transfers SET origin_settler = 's'`},
		{pgtest.Check + "transfers_settled", `UPDATE transfers SET type = 'swap', destination_token = 'other'`},
		{pgtest.Check + "transfers_transfer_ends_confirmed", `UPDATE transfers SET status = 'filled', hash = '0x1'`},
		{pgtest.Check + "transfers_transfer_ends_confirmed", `UPDATE transfers SET status = 'refunded', hash = '0x1'`},
		{pgtest.Check + "transfers_sent", `UPDATE transfers SET status = 'submitted'`},
		{pgtest.Check + "transfers_failure", `UPDATE transfers SET status = 'failed', hash = '0x1'`},
		{pgtest.Check + "transfers_failure", `UPDATE transfers SET failure = 'TX_REVERTED'`},
		{pgtest.Check + "transfers_failure_code", `UPDATE transfers SET status = 'failed', hash = '0x1', failure = 'BAD_LUCK'`},
		{pgtest.Check + "events_sent", pgtest.Step + `('00000000-0000-0000-0000-000000000000', gen_random_uuid(), 'created', 'submitted', NULL, NULL, now(), 2)`},
		{pgtest.Check + "events_failure", pgtest.Step + `('00000000-0000-0000-0000-000000000000', gen_random_uuid(), 'submitted', 'failed', '0x1', NULL, now(), 2)`},
		{pgtest.Check + "transfers_origin_domain_check", `UPDATE transfers SET origin_domain = -1`},
		{pgtest.Check + "transfers_destination_domain_check", `UPDATE transfers SET destination_domain = 4294967296`},
		{pgtest.Check + "transfers_reference_check", `UPDATE transfers SET reference = ''`},
		{pgtest.Check + "transfers_reference_check", `UPDATE transfers SET reference = repeat('r', 129)`},
		{pgtest.Check + "transfers_idempotency_key_check", `UPDATE transfers SET idempotency_key = repeat('i', 256)`},
		{pgtest.Check + "transfers_environment_check", `UPDATE transfers SET environment = 'main'`},
		{pgtest.NotNull, `UPDATE transfers SET key_id = NULL`},
		{pgtest.Check + "transactions_role_check", replacedTransaction + `'claim', 'replaced', true, now())`},
	} {
		_, err := store.Pool().ExecContext(t.Context(), c.statement)
		if got := pgtest.RefusedBy(err); got != c.want {
			t.Errorf("%s\n\tgot  %s\n\twant %s", c.statement, got, c.want)
		}
	}
}

func TestSchema_AcceptsBounds(t *testing.T) {
	t.Parallel()
	store := fillTables(t)
	for _, statement := range []string{
		`UPDATE accounts SET name = repeat('é', 128), email = repeat('é', 254)`,
		`UPDATE accounts SET deleted_at = now()`,
		`INSERT INTO accounts SELECT gen_random_uuid(), name, email, '', NULL, NULL, now(), now() FROM accounts`,
		`UPDATE api_keys SET name = repeat('é', 64), start = 'sk_live_abcd', environment = 'live'`,
		`UPDATE identities SET issuer = 'eip155', subject = '0x' || repeat('a', 40)`,
		`UPDATE identities SET issuer = 'eip155:1'`,
		`UPDATE key_usage SET accepted = 9223372036854775807`,
		`UPDATE chains SET domain = 4294967295, currency_decimals = 255`,
		`UPDATE chains SET domain = 0, currency_decimals = 0`,
		`UPDATE chains SET confirmations = 10000, block_time_ms = 600000, finality = 'safe'`,
		`UPDATE chains SET confirmations = 1, block_time_ms = 50, finality = 'finalized'`,
		`UPDATE chains SET rpc_urls = array_fill(repeat('a', 256), '{8}')`,
		`UPDATE transfers SET source_amount = 2::numeric ^ 256 - 1, destination_amount = 2::numeric ^ 256 - 1`,
		`UPDATE transfers SET reference = repeat('é', 128), idempotency_key = repeat('i', 255), origin_domain = 4294967295`,
		`UPDATE transfers SET type = 'swap', destination_token = 'other', origin_settler = 's', destination_settler = 's', status = 'filled', hash = '0x1'`,
		`UPDATE transfers SET type = 'bridge', destination_chain = 'eip155:1', status = 'refunded'`,
		`INSERT INTO transfers SELECT made.* FROM transfers i, jsonb_populate_record(i, jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256('other'),
			'account_id', gen_random_uuid())) AS made`,
		replacedTransaction + `'settle', 'replaced', true, now())`, // of the previous version
		replacedTransaction + `'finalise', 'replaced', true, now())`,
	} {
		pgtest.Exec(t, store, statement)
	}
}
