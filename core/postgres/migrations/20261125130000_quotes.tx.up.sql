-- Quotes as they were answered. transfer_id is the intent that a quote made, set in the transaction that inserts it: one quote makes one
-- intent. settler and oracle columns, deadline and expires are those of the intent's order.
CREATE TABLE quotes (
    account_id          uuid NOT NULL,
    id                  uuid NOT NULL,
    environment         text NOT NULL CHECK (environment IN ('test', 'live')),
    provider            text NOT NULL,
    kind                text NOT NULL CHECK (kind IN ('exactInput', 'exactOutput')),
    type                text NOT NULL CHECK (type IN ('swap', 'bridge')),
    source_chain        text NOT NULL,
    source_account      text NOT NULL,
    source_token        text NOT NULL,
    source_amount       numeric(78, 0) NOT NULL CHECK (source_amount > 0 AND source_amount < 2::numeric ^ 256),
    destination_chain   text NOT NULL,
    destination_account text NOT NULL,
    destination_token   text NOT NULL,
    destination_amount  numeric(78, 0) NOT NULL CHECK (destination_amount > 0 AND destination_amount < 2::numeric ^ 256),
    deadline            timestamptz NOT NULL,
    order_scheme        text NOT NULL,
    deployment          text NOT NULL,
    input_settler       text NOT NULL,
    output_settler      text NOT NULL,
    input_oracle        text NOT NULL,
    output_oracle       text NOT NULL,
    expires             timestamptz NOT NULL,
    fees                jsonb NOT NULL,
    estimated_seconds   integer CHECK (estimated_seconds > 0),
    created_at          timestamptz NOT NULL,
    expires_at          timestamptz NOT NULL,
    transfer_id         uuid,
    PRIMARY KEY (account_id, id)
);

-- What retention removes.
CREATE INDEX quotes_age ON quotes (created_at);

-- The quote that an intent was made from, NULL for none.
ALTER TABLE transfers
    ADD quote_id uuid,
    ADD quote_provider text,
    ADD quote_expires_at timestamptz;
