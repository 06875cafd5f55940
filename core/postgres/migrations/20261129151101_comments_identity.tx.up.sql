-- What each table and column means, which \d+ shows. COMMENT takes a lock that lets others read and write. A later migration that adds a column or
-- changes a meaning has a COMMENT of its own.

COMMENT ON TABLE accounts IS
    'Customers. A person is an account that somebody signs in to; a shared account belongs to its members. Rows are never removed, '
    'so that what an account did can be traced; one that ended (deleted_at) frees its e-mail address. Sign-ups that nobody '
    'confirmed or entered are removed after 7 days.';
COMMENT ON COLUMN accounts.id IS 'Account id, a UUIDv7.';
COMMENT ON COLUMN accounts.name IS 'Display name, 1 to 128 characters.';
COMMENT ON COLUMN accounts.email IS
    'E-mail address in lower case, unique among accounts that are not deleted. An address under .invalid belongs to an account that'
    ' has none: a shared one, one that a wallet made, or one that lost its address.';
COMMENT ON COLUMN accounts.password_hash IS
    'Argon2id hash of the password. An empty hash matches no password: the account is shared, or is signed in to by an identity or '
    'a passkey.';
COMMENT ON COLUMN accounts.disabled_at IS 'Since when an operator blocks keys and sign-ins; NULL while they work.';
COMMENT ON COLUMN accounts.deleted_at IS 'When the account ended; keys and sign-ins are blocked for ever. NULL while it exists.';
COMMENT ON COLUMN accounts.created_at IS 'When the account was made.';
COMMENT ON COLUMN accounts.updated_at IS 'When the row last changed.';
COMMENT ON COLUMN accounts.erased_at IS 'When core accounts erase took the personal data out of the rows of the ended account.';
COMMENT ON COLUMN accounts.email_verified_at IS
    'When the owner proved to receive mail at the address. No other account can get the address after that.';
COMMENT ON COLUMN accounts.verification_required IS 'Whether the address must be verified before the password signs in.';
COMMENT ON COLUMN accounts.shared IS 'Whether the account belongs to its members and nobody signs in to it.';
COMMENT ON COLUMN accounts.limit_requests IS
    'Requests per period of all keys of one environment together, set by core accounts limit; NULL for the default, 20 times the '
    'limit of one key.';
COMMENT ON COLUMN accounts.limit_period_seconds IS 'Period of limit_requests in seconds; NULL with it.';
COMMENT ON COLUMN accounts.entered_at IS 'When the account had its first session; NULL for never.';
COMMENT ON COLUMN accounts.webauthn_handle IS
    'WebAuthn user handle of the person''s passkeys, 32 random bytes; NULL until the first passkey is asked for.';
COMMENT ON COLUMN accounts.origins IS 'Origins of the pages that may send client tokens, at most 20, as browsers write them.';

COMMENT ON TABLE sessions IS
    'Sessions of browsers. A session ends by sign-out, expires_at, revocation, a change of the password, or with its account. '
    'Expired rows are pruned; a person keeps the newest 100.';
COMMENT ON COLUMN sessions.id IS 'Session id, which the owner revokes it by.';
COMMENT ON COLUMN sessions.token_hash IS 'SHA-256 of the cookie''s token. The token itself is not stored.';
COMMENT ON COLUMN sessions.account_id IS 'The person who signed in.';
COMMENT ON COLUMN sessions.ip_address IS 'Address that the session was made from.';
COMMENT ON COLUMN sessions.user_agent IS 'User-Agent header that the session was made with.';
COMMENT ON COLUMN sessions.expires_at IS 'When the session ends.';
COMMENT ON COLUMN sessions.created_at IS 'When the person signed in.';
COMMENT ON COLUMN sessions.updated_at IS 'When the row last changed.';
COMMENT ON COLUMN sessions.acting_account_id IS
    'The account that the session acts on; NULL for the person''s own. It is no foreign key: a person who is no member of it has no '
    'session.';
COMMENT ON COLUMN sessions.confirmed_at IS 'When the person last confirmed the session by a factor; its sign-in counts.';
COMMENT ON COLUMN sessions.factor IS 'What confirmed the session: password, passkey or oidc; NULL for the sign-in alone.';

COMMENT ON TABLE members IS
    'Who may act on an account. A person is an owner of their own account for as long as it exists; triggers on accounts add that '
    'row and remove all rows of an ended account.';
COMMENT ON COLUMN members.account_id IS 'The account that is acted on.';
COMMENT ON COLUMN members.person_id IS 'The account of the person who acts.';
COMMENT ON COLUMN members.role IS 'owner, developer or viewer.';
COMMENT ON COLUMN members.created_at IS 'When the person became a member.';

COMMENT ON TABLE invitations IS
    'Open invitations to accounts, one for each account and address. An answer, a cancellation, a lower role of the inviter and the'
    ' end of either account remove the row; expired ones are pruned.';
COMMENT ON COLUMN invitations.id IS 'Invitation id.';
COMMENT ON COLUMN invitations.account_id IS 'The account that the invitation is to.';
COMMENT ON COLUMN invitations.inviter_id IS 'The person who invited.';
COMMENT ON COLUMN invitations.email IS 'Address that is invited, in lower case.';
COMMENT ON COLUMN invitations.role IS 'Role that the invitation gives.';
COMMENT ON COLUMN invitations.token_hash IS 'SHA-256 of the token of the newest link; NULL until a mailed link is written.';
COMMENT ON COLUMN invitations.mailed IS 'Whether the link is sent by mail; otherwise the inviter passes it on.';
COMMENT ON COLUMN invitations.expires_at IS 'When the invitation ends.';
COMMENT ON COLUMN invitations.created_at IS 'When the invitation was made.';

COMMENT ON TABLE identities IS
    'Ways to sign in besides the password, at most ten for an account. An identity is free again once it is unlinked or its account'
    ' ended.';
COMMENT ON COLUMN identities.issuer IS
    'Issuer URL of OpenID Connect; eip155 for a wallet with a key, on every chain; the CAIP-2 id of the chain for a smart account, '
    'because the same address elsewhere may be another''s.';
COMMENT ON COLUMN identities.subject IS 'The sub claim, or the address of the wallet in lower case.';
COMMENT ON COLUMN identities.account_id IS 'The account that the identity signs in to.';
COMMENT ON COLUMN identities.created_at IS 'When the identity was linked.';

COMMENT ON TABLE passkeys IS 'WebAuthn credentials of persons, ten at most. They end with their person.';
COMMENT ON COLUMN passkeys.id IS 'Passkey id, which the owner deletes it by.';
COMMENT ON COLUMN passkeys.person_id IS 'The account of the person.';
COMMENT ON COLUMN passkeys.credential_id IS 'Credential id of the authenticator, unique.';
COMMENT ON COLUMN passkeys.public_key IS 'Public key in COSE form.';
COMMENT ON COLUMN passkeys.sign_count IS
    'Number of uses by the authenticator''s count; 0 where it does not count. A use whose count does not rise is refused.';
COMMENT ON COLUMN passkeys.backup_eligible IS 'Whether the passkey may be synchronized (flag BE).';
COMMENT ON COLUMN passkeys.backed_up IS 'Whether the passkey is synchronized (flag BS).';
COMMENT ON COLUMN passkeys.transports IS 'Transports of the authenticator, separated by commas.';
COMMENT ON COLUMN passkeys.aaguid IS 'AAGUID of the authenticator''s model.';
COMMENT ON COLUMN passkeys.name IS 'Name that the owner gave, at most 64 characters.';
COMMENT ON COLUMN passkeys.created_at IS 'When the passkey was added.';
COMMENT ON COLUMN passkeys.used_at IS 'When the passkey was last used; NULL for never.';

COMMENT ON TABLE sign_in_challenges IS
    'Challenges of WebAuthn ceremonies, for five minutes. Reading one deletes it, so that it is good once; expired ones are pruned.';
COMMENT ON COLUMN sign_in_challenges.hash IS 'SHA-256 of the cookie of the browser that asked.';
COMMENT ON COLUMN sign_in_challenges.person_id IS 'Who was signed in; NULL for nobody.';
COMMENT ON COLUMN sign_in_challenges.challenge IS 'The challenge in base64url.';
COMMENT ON COLUMN sign_in_challenges.expires_at IS 'When the challenge ends.';

COMMENT ON TABLE nonces IS
    'Nonces of Sign-in with Ethereum and one-time tokens of forms. Use deletes a nonce and stores a form''s token, so that each is '
    'good once; expired ones are pruned.';
COMMENT ON COLUMN nonces.hash IS 'SHA-256 of the nonce or token.';
COMMENT ON COLUMN nonces.expires_at IS 'When the row is of no use any more.';

COMMENT ON TABLE reset_tokens IS
    'Tokens of links to a new password, good for an hour. Every change of the password deletes all of the account''s; expired ones '
    'are pruned.';
COMMENT ON COLUMN reset_tokens.hash IS 'SHA-256 of the token.';
COMMENT ON COLUMN reset_tokens.account_id IS 'The account whose password is set.';
COMMENT ON COLUMN reset_tokens.expires_at IS 'When the link ends.';
COMMENT ON COLUMN reset_tokens.email IS 'Address that the link was mailed to, which its use proves; NULL for a link that an operator made.';

COMMENT ON TABLE link_tokens IS 'Tokens of links that prove an address, good once and for an hour; expired ones are pruned.';
COMMENT ON COLUMN link_tokens.hash IS 'SHA-256 of the token.';
COMMENT ON COLUMN link_tokens.purpose IS 'verify_email, confirm_email_change (at the present address) or change_email (at the new one).';
COMMENT ON COLUMN link_tokens.account_id IS 'The account whose address is proved or changed.';
COMMENT ON COLUMN link_tokens.email IS 'Address of the account when the link was made. The token is void once the account has another.';
COMMENT ON COLUMN link_tokens.new_email IS 'Address that the account is to get; NULL for verify_email.';
COMMENT ON COLUMN link_tokens.expires_at IS 'When the link ends.';
COMMENT ON COLUMN link_tokens.name IS 'Name of the sign-up that waits for the link; NULL otherwise.';
COMMENT ON COLUMN link_tokens.password_hash IS 'Hash of the password of the sign-up that waits for the link; NULL otherwise.';

COMMENT ON TABLE mails IS
    'Outbox of mails. A row says what the mail is about; its text and link are written when it is sent, so that no link is stored. '
    'It is deleted once it is sent, refused for good, or given up after 12 attempts or 4 hours.';
COMMENT ON COLUMN mails.id IS 'Mail id.';
COMMENT ON COLUMN mails.kind IS
    'What the mail is about: reset_password, sign_up, verify_email, confirm_email_change, change_email, invitation, '
    'webhook_disabled or security_notice.';
COMMENT ON COLUMN mails.recipient IS 'Address that the mail goes to, whether or not an account has it.';
COMMENT ON COLUMN mails.attempts IS 'Number of attempts to send it so far.';
COMMENT ON COLUMN mails.next_attempt_at IS
    'When it is sent next. Its sender puts this two minutes ahead first, so that a mail is sent at least once although a sender '
    'dies.';
COMMENT ON COLUMN mails.created_at IS 'When it was asked for.';
COMMENT ON COLUMN mails.account_id IS 'The account that asked for the mail; NULL for a request of nobody who is signed in.';
COMMENT ON COLUMN mails.new_email IS 'Address that the account is to get; NULL otherwise.';
COMMENT ON COLUMN mails.callback IS 'Path or URL where the link leads; NULL for none.';
COMMENT ON COLUMN mails.invitation_id IS 'The invitation that the mail is about; NULL otherwise.';
COMMENT ON COLUMN mails.webhook_id IS 'The endpoint that attempts have disabled; NULL otherwise.';
COMMENT ON COLUMN mails.name IS 'Name of the sign-up; NULL otherwise.';
COMMENT ON COLUMN mails.password_hash IS 'Hash of the password of the sign-up; NULL otherwise.';
COMMENT ON COLUMN mails.audit_entry_id IS 'The entry of audit_log that a security notice is about; NULL otherwise.';

COMMENT ON TABLE api_keys IS 'API keys, known by the SHA-256 of the whole key. A deleted key keeps its row, because intents name it.';
COMMENT ON COLUMN api_keys.id IS 'Key id.';
COMMENT ON COLUMN api_keys.account_id IS 'The account that owns the key.';
COMMENT ON COLUMN api_keys.name IS 'Name that the owner gave, 1 to 64 characters.';
COMMENT ON COLUMN api_keys.hash IS 'SHA-256 of the whole key. The key itself is not stored.';
COMMENT ON COLUMN api_keys.start IS 'First 12 characters of the key, by which its owner recognizes it.';
COMMENT ON COLUMN api_keys.environment IS 'test or live.';
COMMENT ON COLUMN api_keys.enabled IS 'Whether the owner lets the key be used.';
COMMENT ON COLUMN api_keys.expires_at IS 'When the key ends; NULL for never.';
COMMENT ON COLUMN api_keys.last_used_at IS 'When the key was last used, which only grows; NULL for never.';
COMMENT ON COLUMN api_keys.limit_requests IS 'Requests per period.';
COMMENT ON COLUMN api_keys.limit_period_seconds IS 'Period of limit_requests in seconds.';
COMMENT ON COLUMN api_keys.deleted_at IS 'When the key was deleted; NULL while it exists.';
COMMENT ON COLUMN api_keys.created_at IS 'When the key was made.';
COMMENT ON COLUMN api_keys.updated_at IS 'When the owner last changed the key.';
COMMENT ON COLUMN api_keys.limit_bucket IS 'Id of the bucket of the rate limit: the key''s own id, or that of the key that it replaced.';
COMMENT ON COLUMN api_keys.rotated_at IS
    'When another key replaced this one, which works until its expires_at; NULL for a key that was not replaced.';
COMMENT ON COLUMN api_keys.scopes IS 'What the key may do: intents:read, intents:write, webhooks. At least one.';
COMMENT ON COLUMN api_keys.networks IS 'IP networks that the key may be used from, at most 32; none for any.';

COMMENT ON TABLE key_changes IS
    'What gateways must remove from their caches: a row for every change that alters the check of a key. Triggers write it, so that'
    ' neither code nor an operator in psql revokes a key unnoticed; TRUNCATE alone fires none. Kept 48 hours, twice as long as a '
    'cursor is good for.';
COMMENT ON COLUMN key_changes.id IS 'Serial number, which has no meaning for the order.';
COMMENT ON COLUMN key_changes.hash IS 'api_keys.hash of the key that changed.';
COMMENT ON COLUMN key_changes.xid IS
    'Transaction that wrote the row. A reader''s cursor is the snapshot of its last read, and rows that it does not see are new: a '
    'serial number would lose transactions that commit late.';
COMMENT ON COLUMN key_changes.changed_at IS 'When the transaction began.';

COMMENT ON TABLE key_usage IS 'Requests of each key, minute by minute, for 8 days.';
COMMENT ON COLUMN key_usage.account_id IS 'The account that owns the key.';
COMMENT ON COLUMN key_usage.minute IS 'Beginning of the minute.';
COMMENT ON COLUMN key_usage.key_id IS 'The key.';
COMMENT ON COLUMN key_usage.accepted IS 'Requests that were forwarded.';
COMMENT ON COLUMN key_usage.limited IS 'Requests that were over the rate limit.';
COMMENT ON COLUMN key_usage.refused IS 'Requests that were rejected for another reason.';

COMMENT ON TABLE usage_reports IS 'Usage reports of gateways that were stored, for a day, so that a report that is repeated counts once.';
COMMENT ON COLUMN usage_reports.id IS 'Id that the gateway gave its report.';
COMMENT ON COLUMN usage_reports.received_at IS 'When it was stored.';

COMMENT ON TABLE audit_log IS
    'Who did what to an account, its members, sessions, keys and webhooks, written in the transaction that does it. Only ever added'
    ' to: a trigger lets entries older than 30 days be deleted, personal data of ended accounts and persons be emptied, and hourly '
    'entries be counted. Hourly are failed sign-ins, sign-outs, requests of a new password, switches to an account, refusals by the'
    ' screening list and what a key does to webhooks. Kept for CORE_AUDIT_RETENTION.';
COMMENT ON COLUMN audit_log.id IS
    'UUIDv7 of the entry''s time. That of an hourly entry is derived from its hour, account, action, person or key, webhook and '
    'address, so that all attempts of an hour are one row.';
COMMENT ON COLUMN audit_log.account_id IS 'The account that the entry is about. It is no foreign key.';
COMMENT ON COLUMN audit_log.occurred_at IS 'When it happened; of an hourly entry, the first time.';
COMMENT ON COLUMN audit_log.actor IS 'owner (a member or key of the account) or operator.';
COMMENT ON COLUMN audit_log.action IS 'What was done.';
COMMENT ON COLUMN audit_log.key_id IS 'The key that the action is on or that acted on a webhook or the origins; NULL otherwise.';
COMMENT ON COLUMN audit_log.key_name IS 'Name of the key then; empty for none.';
COMMENT ON COLUMN audit_log.detail IS 'What the action was about, of an hourly entry the first time; empty for nothing.';
COMMENT ON COLUMN audit_log.ip_address IS 'Address of the request; empty for an operator, and once it is erased.';
COMMENT ON COLUMN audit_log.user_agent IS 'User-Agent header of the request; empty for an operator, and once it is erased.';
COMMENT ON COLUMN audit_log.person_id IS 'The member who acted; NULL for the holder of the account, a key or an operator.';
COMMENT ON COLUMN audit_log.repeats IS 'How many of the same followed within the hour.';
COMMENT ON COLUMN audit_log.last_at IS 'When the last of the hour happened; NULL where there was one.';
COMMENT ON COLUMN audit_log.last_detail IS 'Detail of the last of the hour; NULL where there was one.';
