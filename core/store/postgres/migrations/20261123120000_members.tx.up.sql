-- A shared account belongs to its members alone: nobody signs in to it.
ALTER TABLE accounts ADD COLUMN shared boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT accounts_shared CHECK (NOT shared OR password_hash = '');

-- Who may act on an account. A person is the account that they signed up with, of which they stay an owner: its holder.
CREATE TABLE members (
    account_id uuid NOT NULL REFERENCES accounts,
    person_id  uuid NOT NULL REFERENCES accounts,
    role       text NOT NULL CHECK (role IN ('owner', 'developer', 'viewer')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, person_id),
    CONSTRAINT members_holder CHECK (account_id <> person_id OR role = 'owner')
);

CREATE INDEX members_person ON members (person_id);

-- Invitations that wait for an answer. The token of the link is known by its SHA-256; a link that is mailed gets it when the mail is written.
CREATE TABLE invitations (
    id         uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts,
    inviter_id uuid NOT NULL REFERENCES accounts,
    email      text NOT NULL CHECK (email = lower(email) AND char_length(email) <= 254),
    role       text NOT NULL CHECK (role IN ('owner', 'developer', 'viewer')),
    token_hash bytea UNIQUE CHECK (octet_length(token_hash) = 32),
    mailed     boolean NOT NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT invitations_once UNIQUE (account_id, email)
);

CREATE INDEX invitations_email ON invitations (email);
CREATE INDEX invitations_inviter ON invitations (inviter_id);
CREATE INDEX invitations_expiry ON invitations (expires_at);

-- Triggers do what the version before this one does not know of: a new account has its holder, and an ended one neither members nor
-- memberships.
CREATE FUNCTION add_holder() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO members (account_id, person_id, role, created_at) VALUES (NEW.id, NEW.id, 'owner', NEW.created_at);
    RETURN NULL;
END $$;

CREATE TRIGGER accounts_holder
    AFTER INSERT ON accounts FOR EACH ROW WHEN (NOT NEW.shared AND NEW.deleted_at IS NULL) EXECUTE FUNCTION add_holder();

CREATE FUNCTION end_memberships() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM members WHERE account_id = NEW.id OR person_id = NEW.id;
    DELETE FROM invitations WHERE account_id = NEW.id OR inviter_id = NEW.id;
    RETURN NULL;
END $$;

CREATE TRIGGER accounts_ended
    AFTER UPDATE OF deleted_at ON accounts FOR EACH ROW WHEN (NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION end_memberships();

-- The triggers keep other writers of accounts waiting until this transaction has committed, so no account is left out.
INSERT INTO members (account_id, person_id, role, created_at) SELECT id, id, 'owner', created_at FROM accounts WHERE deleted_at IS NULL;

-- The account that a session acts on; null is the account that signed in, account_id, which is all that the version before this one knows.
ALTER TABLE sessions ADD COLUMN acting_account_id uuid;

-- What a mail of an invitation is about.
ALTER TABLE mails ADD COLUMN invitation_id uuid;

-- Which of the account's members took an action; null for its holder, and in the rows of the version before this one.
ALTER TABLE audit_log ADD COLUMN person_id uuid;

CREATE OR REPLACE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.occurred_at < now() - interval '30 days' THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND (NEW.id, NEW.account_id, NEW.occurred_at, NEW.actor, NEW.action) = (OLD.id, OLD.account_id, OLD.occurred_at, OLD.actor, OLD.action)
        AND NEW.key_id IS NOT DISTINCT FROM OLD.key_id AND NEW.person_id IS NOT DISTINCT FROM OLD.person_id
        AND (NEW.key_name, NEW.detail, NEW.ip_address, NEW.user_agent) = ('', '', '', '')
        AND EXISTS (SELECT FROM accounts WHERE accounts.id = OLD.account_id AND deleted_at IS NOT NULL) THEN
        RETURN NEW;
    END IF;
    -- An ended person's address and browser go from the logs of other accounts; what was done stays.
    IF TG_OP = 'UPDATE' AND to_jsonb(NEW) - '{ip_address,user_agent}'::text[] = to_jsonb(OLD) - '{ip_address,user_agent}'::text[]
        AND (NEW.ip_address, NEW.user_agent) = ('', '')
        AND EXISTS (SELECT FROM accounts WHERE accounts.id = OLD.person_id AND deleted_at IS NOT NULL) THEN
        RETURN NEW;
    END IF;
    RAISE 'the audit log is only ever added to' USING ERRCODE = 'restrict_violation', CONSTRAINT = 'audit_log_append_only';
END $$;

-- The audit log names what is done with members. Every row satisfies the wider rule, so that none is read while writers wait.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check, ADD CONSTRAINT audit_log_action_check CHECK (action IN (
    'signed_up', 'signed_in', 'sessions_revoked', 'password_changed', 'password_reset', 'reset_link_made', 'email_verified',
    'email_change_requested', 'email_changed', 'email_lost', 'identity_linked', 'identity_unlinked', 'account_shared', 'account_renamed',
    'member_invited', 'invitation_canceled', 'invitation_declined', 'member_joined', 'member_changed', 'member_removed',
    'member_left', 'account_disabled', 'account_enabled', 'account_deleted', 'key_created', 'key_updated', 'key_rotated',
    'key_deleted', 'webhook_created', 'webhook_updated', 'webhook_secret_rotated', 'webhook_deleted', 'webhook_replayed')) NOT VALID;
