-- What intents were called before each change of their reference or labels. sequence is that of the event of the change. So events, which never
-- change, have the names of their time, and a repeated request is compared with the first ones.
CREATE TABLE transfer_updates (
    account_id  uuid NOT NULL,
    transfer_id uuid NOT NULL,
    sequence    integer NOT NULL CHECK (sequence > 1),
    reference   text,
    labels      text,
    PRIMARY KEY (account_id, transfer_id, sequence)
);
