package postgres_test

import (
	"testing"

	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
)

// fillTables puts a row into every table.
func fillTables(t *testing.T) *postgres.Store {
	t.Helper()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := insertAccount(t, store, "owner@example.com")
	insertKey(t, store, owner.ID)
	pgtest.Exec(t, store, `INSERT INTO sessions SELECT gen_random_uuid(), sha256('token'), id, '', '', now(), now(), now() FROM accounts`)
	pgtest.Exec(t, store, `INSERT INTO identities SELECT 'https://id.example.com', '7', id, now() FROM accounts`)
	pgtest.Exec(t, store, `INSERT INTO nonces VALUES (sha256('nonce'), now())`)
	pgtest.Exec(t, store, `INSERT INTO reset_tokens SELECT sha256('token'), id, now() FROM accounts`)
	pgtest.Exec(t, store, `INSERT INTO invitations SELECT gen_random_uuid(), id, id, 'new@example.com', 'viewer', sha256('token'), false, now(), now() FROM accounts`)
	pgtest.Exec(t, store, `INSERT INTO mails VALUES (gen_random_uuid(), 'reset_password', 'owner@example.com', 0, now(), now())`)
	pgtest.Exec(t, store, `INSERT INTO key_usage SELECT account_id, '2026-11-21 12:00Z', id, 0, 0, 0 FROM api_keys`)
	pgtest.Exec(t, store, `INSERT INTO usage_reports VALUES (gen_random_uuid(), now())`)
	intent := newIntent(t, known, owner.ID, transferBody)
	if _, err := store.InsertTransfer(t.Context(), intent, idempotent(t, "once", transferBody)); err != nil {
		t.Fatal(err)
	}
	return store
}

const (
	check   = "23514 "
	notNull = "23502 "
	unique  = "23505 "
	foreign = "23503 "
	appends = "23001 audit_log_append_only"

	// swap makes a swap of the one transfer, whose two amounts may differ.
	swap = `UPDATE transfers SET type = 'swap', destination_token = 'other', origin_settler = 's', destination_settler = 's'`
	// step records a transition.
	step = `INSERT INTO events (account_id, transfer_id, from_status, to_status, hash, failure, occurred_at, sequence) VALUES `
)

func TestSchema_Refuses(t *testing.T) {
	t.Parallel()
	store := fillTables(t)
	for _, c := range []struct{ want, statement string }{
		{check + "accounts_name_check", `UPDATE accounts SET name = ''`},
		{check + "accounts_name_check", `UPDATE accounts SET name = repeat('n', 129)`},
		{check + "accounts_email_check", `UPDATE accounts SET email = 'Owner@example.com'`},
		{check + "accounts_email_check", `UPDATE accounts SET email = repeat('e', 255)`},
		{unique + "accounts_email", `INSERT INTO accounts SELECT gen_random_uuid(), name, email, '', NULL, NULL, now(), now() FROM accounts`},
		{unique + "accounts_email", `INSERT INTO accounts SELECT gen_random_uuid(), name, email, '', now(), NULL, now(), now() FROM accounts`},
		{unique + "accounts_pkey", `INSERT INTO accounts SELECT id, name, 'other@example.com', '', NULL, NULL, now(), now() FROM accounts`},
		{foreign + "sessions_account_id_fkey", `DELETE FROM accounts`},

		{check + "sessions_token_hash_check", `UPDATE sessions SET token_hash = 'short'`},
		{unique + "sessions_token_hash_key", `INSERT INTO sessions SELECT gen_random_uuid(), token_hash, account_id, '', '', now(), now(), now() FROM sessions`},
		{foreign + "sessions_account_id_fkey", `UPDATE sessions SET account_id = gen_random_uuid()`},
		{notNull, `UPDATE sessions SET expires_at = NULL`},

		{check + "accounts_limit", `UPDATE accounts SET limit_requests = 1`},
		{check + "accounts_limit", `UPDATE accounts SET limit_requests = 0, limit_period_seconds = 1`},
		{check + "accounts_limit", `UPDATE accounts SET limit_requests = 1, limit_period_seconds = 0`},

		{check + "api_keys_name_check", `UPDATE api_keys SET name = ''`},
		{check + "api_keys_name_check", `UPDATE api_keys SET name = repeat('n', 65)`},
		{check + "api_keys_hash_check", `UPDATE api_keys SET hash = 'short'`},
		{unique + "api_keys_hash_key", `INSERT INTO api_keys SELECT (jsonb_populate_record(k, jsonb_build_object('id', gen_random_uuid()))).* FROM api_keys k`},
		{check + "api_keys_start_check", `UPDATE api_keys SET start = 'sk_test_abc'`},
		{check + "api_keys_check", `UPDATE api_keys SET environment = 'live'`},
		{check + "api_keys_check", `UPDATE api_keys SET start = 'skxtestxabcd'`},
		{check + "api_keys_environment_check", `UPDATE api_keys SET environment = 'main', start = 'sk_live_abcd'`},
		{check + "api_keys_limit_requests_check", `UPDATE api_keys SET limit_requests = 0`},
		{check + "api_keys_limit_period_seconds_check", `UPDATE api_keys SET limit_period_seconds = 0`},
		{foreign + "api_keys_account_id_fkey", `UPDATE api_keys SET account_id = gen_random_uuid()`},
		{notNull, `UPDATE api_keys SET enabled = NULL`},
		{notNull, `UPDATE api_keys SET limit_bucket = NULL`},
		{check + "api_keys_rotated", `UPDATE api_keys SET rotated_at = now()`},

		{unique + "identities_pkey", `INSERT INTO identities SELECT * FROM identities`},
		{foreign + "identities_account_id_fkey", `UPDATE identities SET account_id = gen_random_uuid()`},
		{check + "identities_issuer_check", `UPDATE identities SET issuer = ''`},
		{check + "identities_subject_check", `UPDATE identities SET subject = ''`},
		{check + "identities_subject_check", `UPDATE identities SET subject = repeat('s', 256)`},
		{check + "identities_wallet", `UPDATE identities SET issuer = 'eip155', subject = '0x' || repeat('A', 40)`},
		{check + "identities_smart_account", `UPDATE identities SET issuer = 'eip155:1', subject = '0x' || repeat('A', 40)`},
		{check + "identities_smart_account", `UPDATE identities SET issuer = 'eip155:01', subject = '0x' || repeat('a', 40)`},
		{check + "nonces_hash_check", `UPDATE nonces SET hash = 'short'`},
		{unique + "nonces_pkey", `INSERT INTO nonces SELECT * FROM nonces`},
		{check + "reset_tokens_hash_check", `UPDATE reset_tokens SET hash = 'short'`},
		{unique + "reset_tokens_pkey", `INSERT INTO reset_tokens SELECT * FROM reset_tokens`},
		{foreign + "reset_tokens_account_id_fkey", `UPDATE reset_tokens SET account_id = gen_random_uuid()`},
		{check + "accounts_shared", `UPDATE accounts SET shared = true`}, // it has a password
		{check + "members_role_check", `INSERT INTO members SELECT account_id, gen_random_uuid(), 'admin', now() FROM members`},
		{check + "members_holder", `UPDATE members SET role = 'viewer'`},
		{unique + "members_pkey", `INSERT INTO members SELECT * FROM members`},
		{foreign + "members_person_id_fkey", `INSERT INTO members SELECT account_id, gen_random_uuid(), 'viewer', now() FROM members`},
		{check + "invitations_role_check", `UPDATE invitations SET role = ''`},
		{check + "invitations_email_check", `UPDATE invitations SET email = 'New@example.com'`},
		{check + "invitations_token_hash_check", `UPDATE invitations SET token_hash = 'short'`},
		{unique + "invitations_once", `INSERT INTO invitations SELECT gen_random_uuid(), account_id, inviter_id, email, role, NULL, true, now(), now() FROM invitations`},
		{unique + "invitations_token_hash_key", `INSERT INTO invitations SELECT gen_random_uuid(), account_id, inviter_id, 'x@example.com', role, token_hash, true, now(), now() FROM invitations`},
		{check + "mails_recipient_check", `UPDATE mails SET recipient = repeat('r', 255)`},
		{check + "mails_attempts_check", `UPDATE mails SET attempts = -1`},
		{unique + "mails_pkey", `INSERT INTO mails SELECT * FROM mails`},

		{check + "audit_log_actor_check", `INSERT INTO audit_log SELECT gen_random_uuid(), id, now(), 'nobody', 'signed_in', NULL, '', '', '', '' FROM accounts`},
		{check + "audit_log_action_check", `INSERT INTO audit_log SELECT gen_random_uuid(), id, now(), 'owner', 'danced', NULL, '', '', '', '' FROM accounts`},
		{check + "audit_log_key", `INSERT INTO audit_log SELECT gen_random_uuid(), id, now(), 'owner', 'key_created', NULL, '', '', '', '' FROM accounts`},
		{check + "audit_log_key", `INSERT INTO audit_log SELECT gen_random_uuid(), id, now(), 'owner', 'signed_in', id, '', '', '', '' FROM accounts`},
		{unique + "audit_log_pkey", `INSERT INTO audit_log SELECT * FROM audit_log`},
		{appends, `UPDATE audit_log SET detail = 'nothing to see'`},
		{appends, `UPDATE audit_log SET key_name = '', detail = '', ip_address = '', user_agent = ''`}, // the account has not ended
		{appends, `DELETE FROM audit_log`},
		{check + "accounts_erased", `UPDATE accounts SET erased_at = now()`},
		{appends, `TRUNCATE audit_log`},

		{check + "key_usage_accepted_check", `UPDATE key_usage SET accepted = -1`},
		{check + "key_usage_limited_check", `UPDATE key_usage SET limited = -1`},
		{check + "key_usage_refused_check", `UPDATE key_usage SET refused = -1`},
		{check + "key_usage_minute_check", `UPDATE key_usage SET minute = minute + interval '1 s'`},
		{check + "key_usage_minute_check", `UPDATE key_usage SET minute = minute + interval '1 us'`},
		{unique + "key_usage_pkey", `INSERT INTO key_usage SELECT * FROM key_usage`},
		{unique + "usage_reports_pkey", `INSERT INTO usage_reports SELECT * FROM usage_reports`},

		{check + "chains_id_check", `INSERT INTO chains VALUES ('eip155', 'n', 'test', 'c', 'C', 18, 1)`},
		{check + "chains_id_check", `INSERT INTO chains VALUES ('EIP155:1', 'n', 'test', 'c', 'C', 18, 1)`},
		{check + "chains_id_check", `INSERT INTO chains VALUES (E'eip155:7\n', 'n', 'test', 'c', 'C', 18, 1)`},
		{unique + "chains_pkey", `INSERT INTO chains VALUES ('eip155:1', 'n', 'test', 'c', 'C', 18, 1)`},
		{check + "chains_environment_check", `UPDATE chains SET environment = 'Test'`},
		{notNull, `UPDATE chains SET environment = NULL`},
		{check + "chains_currency_decimals_check", `UPDATE chains SET currency_decimals = 256`},
		{check + "chains_domain_check", `UPDATE chains SET domain = 4294967296`},
		{check + "chains_domain_check", `UPDATE chains SET domain = -1`},
		{check + "chains_check", `UPDATE chains SET settler_address = NULL, settler_same_chain = true`},
		{check + "chains_confirmations_check", `UPDATE chains SET confirmations = 0`},
		{check + "chains_confirmations_check", `UPDATE chains SET confirmations = 10001`},
		{notNull, `UPDATE chains SET confirmations = NULL`},
		{check + "chains_finality_check", `UPDATE chains SET finality = 'latest'`},
		{notNull, `UPDATE chains SET finality = NULL`},
		{check + "chains_block_time_ms_check", `UPDATE chains SET block_time_ms = 49`},
		{check + "chains_block_time_ms_check", `UPDATE chains SET block_time_ms = 600001`},
		{notNull, `UPDATE chains SET block_time_ms = NULL`},
		{check + "chains_settler_scheme_check", `UPDATE chains SET settler_scheme = 'StandardOrder'`},
		{notNull, `UPDATE chains SET settler_scheme = NULL`},
		{check + "chains_rpc_urls_check", `UPDATE chains SET rpc_urls = '{}'`},
		{check + "chains_rpc_urls_check", `UPDATE chains SET rpc_urls = ARRAY['https://a', NULL]`},
		{check + "chains_rpc_urls_check", `UPDATE chains SET rpc_urls = array_fill('https://a'::text, '{9}')`},
		{check + "chains_rpc_urls_check", `UPDATE chains SET rpc_urls = ARRAY[repeat('a', 2049)]`},
		{foreign + "tokens_chain_id_fkey", `DELETE FROM chains WHERE id = 'eip155:1'`},
		{foreign + "tokens_chain_id_fkey", `INSERT INTO tokens VALUES ('eip155:7', '0x', 'S', 1)`},
		{unique + "tokens_pkey", `INSERT INTO tokens SELECT chain_id, address, 'S', 1 FROM tokens LIMIT 1`},
		{check + "tokens_decimals_check", `UPDATE tokens SET decimals = -1`},
		{unique + "registry_version_pkey", `INSERT INTO registry_version (version) VALUES (2)`},
		{check + "registry_version_only_row_check", `INSERT INTO registry_version VALUES (false, 2)`},

		{check + "transfers_status_check", `UPDATE transfers SET status = 'done'`},
		{check + "transfers_type_check", `UPDATE transfers SET type = 'loan', source_token = 'x', origin_settler = 's'`},
		{check + "transfers_order_id_check", `UPDATE transfers SET order_id = 'short'`},
		{unique + "transfers_order_id_key", `INSERT INTO transfers SELECT (jsonb_populate_record(i,
			jsonb_build_object('id', gen_random_uuid(), 'idempotency_key', null))).* FROM transfers i`},
		{unique + "transfers_idempotency", `INSERT INTO transfers SELECT (jsonb_populate_record(i,
			jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256('other')))).* FROM transfers i`},
		{check + "transfers_source_amount_check", swap + `, source_amount = 0`},
		{check + "transfers_source_amount_check", swap + `, source_amount = 2::numeric ^ 256`},
		{check + "transfers_destination_amount_check", swap + `, destination_amount = 0`},
		{check + "transfers_destination_amount_check", swap + `, destination_amount = 2::numeric ^ 256`},
		{check + "transfers_transfer_keeps_amount", `UPDATE transfers SET destination_amount = 4`},
		{check + "transfers_bridge_crosses", `UPDATE transfers SET type = 'bridge', origin_settler = 's', destination_settler = 's'`},
		{check + "transfers_bridge_crosses", `UPDATE transfers SET destination_chain = 'eip155:1'`},
		{check + "transfers_transfer_keeps_token", `UPDATE transfers SET type = 'swap', origin_settler = 's', destination_settler = 's'`},
		{check + "transfers_transfer_keeps_token", `UPDATE transfers SET destination_token = 'other'`},
		{check + "transfers_settled", `UPDATE transfers SET origin_settler = 's'`},
		{check + "transfers_settled", `UPDATE transfers SET type = 'swap', destination_token = 'other'`},
		{check + "transfers_transfer_ends_confirmed", `UPDATE transfers SET status = 'filled', hash = '0x1'`},
		{check + "transfers_transfer_ends_confirmed", `UPDATE transfers SET status = 'refunded', hash = '0x1'`},
		{check + "transfers_sent", `UPDATE transfers SET status = 'submitted'`},
		{check + "transfers_failure", `UPDATE transfers SET status = 'failed', hash = '0x1'`},
		{check + "transfers_failure", `UPDATE transfers SET failure = 'TX_REVERTED'`},
		{check + "transfers_failure_code", `UPDATE transfers SET status = 'failed', hash = '0x1', failure = 'BAD_LUCK'`},
		{check + "events_sent", step + `('00000000-0000-0000-0000-000000000000', gen_random_uuid(), 'created', 'submitted', NULL, NULL, now(), 2)`},
		{check + "events_failure", step + `('00000000-0000-0000-0000-000000000000', gen_random_uuid(), 'submitted', 'failed', '0x1', NULL, now(), 2)`},
		{check + "transfers_origin_domain_check", `UPDATE transfers SET origin_domain = -1`},
		{check + "transfers_destination_domain_check", `UPDATE transfers SET destination_domain = 4294967296`},
		{check + "transfers_reference_check", `UPDATE transfers SET reference = ''`},
		{check + "transfers_reference_check", `UPDATE transfers SET reference = repeat('r', 129)`},
		{check + "transfers_idempotency_key_check", `UPDATE transfers SET idempotency_key = repeat('i', 256)`},
		{check + "transfers_environment_check", `UPDATE transfers SET environment = 'main'`},
		{notNull, `UPDATE transfers SET key_id = NULL`},
	} {
		_, err := store.Pool().ExecContext(t.Context(), c.statement)
		if got := refusedBy(err); got != c.want {
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
		`INSERT INTO transfers SELECT (jsonb_populate_record(i, jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256('other'),
			'account_id', gen_random_uuid()))).* FROM transfers i`,
	} {
		pgtest.Exec(t, store, statement)
	}
}
