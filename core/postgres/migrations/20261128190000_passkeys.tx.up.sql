-- WebAuthn credentials of persons (WebAuthn level 3, section 4, "credential record"). public_key is the COSE key. A sign count of 0 means that
-- the authenticator does not count. They end with their person.
CREATE TABLE passkeys (
    id              uuid PRIMARY KEY,
    person_id       uuid NOT NULL REFERENCES accounts ON DELETE CASCADE,
    credential_id   bytea NOT NULL CHECK (octet_length(credential_id) BETWEEN 1 AND 1023),
    public_key      bytea NOT NULL,
    sign_count      bigint NOT NULL CHECK (sign_count >= 0),
    backup_eligible boolean NOT NULL,
    backed_up       boolean NOT NULL,
    transports      text NOT NULL,
    aaguid          uuid NOT NULL,
    name            text NOT NULL CHECK (char_length(name) <= 64),
    created_at      timestamptz NOT NULL,
    used_at         timestamptz,
    CONSTRAINT passkeys_backup CHECK (backup_eligible OR NOT backed_up),
    CONSTRAINT passkeys_credential UNIQUE (credential_id)
);

CREATE INDEX passkeys_person ON passkeys (person_id);

-- Challenges of WebAuthn ceremonies, known by the SHA-256 of their browser's cookie. Reading one removes it. person_id is the person who was
-- signed in, NULL for nobody.
CREATE TABLE sign_in_challenges (
    hash       bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    person_id  uuid REFERENCES accounts ON DELETE CASCADE,
    challenge  text NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE INDEX sign_in_challenges_expiry ON sign_in_challenges (expires_at);
CREATE INDEX sign_in_challenges_person ON sign_in_challenges (person_id);

-- The user handle of a person's passkeys, NULL until the first one is asked for.
ALTER TABLE accounts ADD webauthn_handle bytea;

-- When a session was confirmed last, and by what: 'password', 'passkey' or 'oidc', NULL for its sign-in alone. Sessions from before have no
-- time of their own: they were confirmed when they were created.
ALTER TABLE sessions ADD confirmed_at timestamptz, ADD factor text;
ALTER TABLE sessions ALTER confirmed_at SET DEFAULT now();

-- Changes of passkeys are in the log. NOT VALID: the rows there passed the stricter check, and reading them all under the lock would stop the
-- service.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check;
ALTER TABLE audit_log ADD CONSTRAINT audit_log_action_check CHECK (action IN (
    'signed_up', 'signed_in', 'sign_in_failed', 'signed_out', 'sessions_revoked', 'reset_requested', 'account_switched',
    'password_changed', 'password_reset', 'reset_link_made', 'email_verified', 'email_change_requested', 'email_changed',
    'email_lost', 'identity_linked', 'identity_unlinked', 'account_shared', 'account_renamed', 'member_invited',
    'invitation_canceled', 'invitation_declined', 'member_joined', 'member_changed', 'member_removed', 'member_left',
    'account_limit_changed', 'account_disabled', 'account_enabled', 'account_deleted', 'key_created', 'key_updated',
    'key_rotated', 'key_deleted', 'webhook_created', 'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted',
    'webhook_replayed',
    'screening_refused',
    'passkey_added', 'passkey_deleted', 'passkey_refused', 'passkeys_removed')) NOT VALID;
