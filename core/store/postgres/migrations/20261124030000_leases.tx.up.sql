-- Work that one process does for all, by its name: holder, until lease_until by the database's clock.
CREATE TABLE leases (
    name        text PRIMARY KEY,
    holder      uuid NOT NULL,
    lease_until timestamptz NOT NULL
);
