-- The orders past their deadlines of which only attempts are known, without the simulated ones, which no chain decides on. transfers_overdue stays for
-- the previous version.
CREATE INDEX CONCURRENTLY transfers_watched_overdue ON transfers (source_chain, deadline)
    WHERE status IN ('submitted', 'failed') AND type <> 'transfer' AND NOT simulated;
