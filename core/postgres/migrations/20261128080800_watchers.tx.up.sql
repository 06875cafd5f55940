-- The processes that can follow chains, which share the chains between them. Each writes its own row.
CREATE TABLE watchers (
    holder      text PRIMARY KEY,
    chains      text[] NOT NULL,
    alive_until timestamptz NOT NULL
);
