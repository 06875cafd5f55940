-- What each table and column means, which \d+ shows. COMMENT takes a lock that lets others read and write. A later migration that adds a column or
-- changes a meaning has a COMMENT of its own.

COMMENT ON TABLE chains IS
    'Registry of chains, imported by core chains import, which changes only what its rows name. Triggers raise registry_version and'
    ' keep every settler and oracle.';
COMMENT ON COLUMN chains.id IS 'CAIP-2 id.';
COMMENT ON COLUMN chains.name IS 'Display name.';
COMMENT ON COLUMN chains.environment IS 'test or live, never both.';
COMMENT ON COLUMN chains.currency_name IS 'Name of the native currency.';
COMMENT ON COLUMN chains.currency_symbol IS 'Symbol of the native currency.';
COMMENT ON COLUMN chains.currency_decimals IS 'Decimals of the native currency.';
COMMENT ON COLUMN chains.domain IS 'Of version 0.1.0, unused.';
COMMENT ON COLUMN chains.settler_address IS 'Of version 0.1.0, unused.';
COMMENT ON COLUMN chains.settler_same_chain IS 'Of version 0.1.0, unused.';
COMMENT ON COLUMN chains.created_at IS 'When it was imported first.';
COMMENT ON COLUMN chains.updated_at IS 'When it was imported last.';
COMMENT ON COLUMN chains.confirmations IS 'Depth in blocks at which a block counts, 1 to 10,000.';
COMMENT ON COLUMN chains.finality IS 'When a block is permanent: depth (by confirmations), safe or finalized (by the node''s tag).';
COMMENT ON COLUMN chains.block_time_ms IS 'Milliseconds between blocks, 50 to 600,000, which sets how often the chain is polled.';
COMMENT ON COLUMN chains.settler_scheme IS 'Of version 0.1.0, unused.';
COMMENT ON COLUMN chains.rpc_urls IS 'Public RPC URLs for wallets (EIP-3085), 1 to 8 of 2,048 bytes together; NULL for none.';
COMMENT ON COLUMN chains.settlements IS
    'Deployments that execute orders from and to the chain, the preferred one first: a JSON array with the members of core chains '
    'import.';
COMMENT ON COLUMN chains.wrapped_native IS
    'Symbol of the token that wraps the native currency; NULL for W and the currency''s symbol, or WETH.';
COMMENT ON COLUMN chains.explorer IS 'Base URL of the block explorer, whose paths are those of EIP-3091; NULL for none.';

COMMENT ON TABLE tokens IS 'Registry of tokens, imported by core tokens import.';
COMMENT ON COLUMN tokens.chain_id IS 'The chain, which must exist.';
COMMENT ON COLUMN tokens.address IS 'Address of the contract, or 0xEeee… for the native currency.';
COMMENT ON COLUMN tokens.symbol IS 'Symbol.';
COMMENT ON COLUMN tokens.decimals IS 'Decimals, 0 to 255.';
COMMENT ON COLUMN tokens.metadata IS 'URI or serialized payload, of token lists the URI of the logo; NULL for none.';
COMMENT ON COLUMN tokens.created_at IS 'When it was imported first.';
COMMENT ON COLUMN tokens.updated_at IS 'When it was imported last.';
COMMENT ON COLUMN tokens.source IS 'Where the definition was published; NULL where nobody recorded it.';
COMMENT ON COLUMN tokens.license IS 'Licence of the definition as an SPDX expression; NULL where nobody recorded it.';
COMMENT ON COLUMN tokens.erc3009 IS
    'EIP-712 domain and form of the token''s ERC-3009 functions, {"name", "version", "form"}; NULL where it has none or nobody '
    'recorded it.';
COMMENT ON COLUMN tokens.eip2612 IS
    'EIP-712 domain of the token''s EIP-2612 permits, {"name", "version"}; NULL where it has none or nobody recorded it.';
COMMENT ON COLUMN tokens.fee_on_transfer IS 'Whether a transfer brings less than it takes.';
COMMENT ON COLUMN tokens.name IS 'Name by the list that it was imported from; NULL where that had none.';

COMMENT ON TABLE registry_version IS
    'One row whose number triggers raise with every statement that writes to chains or tokens. Each core reads it four times a '
    'second, and the registry again once it has changed.';
COMMENT ON COLUMN registry_version.only_row IS 'True, which keeps it one row.';
COMMENT ON COLUMN registry_version.version IS 'The number.';

COMMENT ON TABLE chain_settlers IS
    'Every input and output settler that a chain ever had, stored by triggers, so that orders at an old one are followed to their '
    'end. None may be sent tokens.';
COMMENT ON COLUMN chain_settlers.chain_id IS 'CAIP-2 id of the chain.';
COMMENT ON COLUMN chain_settlers.address IS 'Address of the settler.';

COMMENT ON TABLE chain_oracles IS 'Every oracle that a chain ever had, stored by a trigger. None may be sent tokens.';
COMMENT ON COLUMN chain_oracles.chain_id IS 'CAIP-2 id of the chain.';
COMMENT ON COLUMN chain_oracles.address IS 'Address of the oracle.';

COMMENT ON TABLE chain_activity IS 'Until when intents may touch a chain. A table of its own, so that a POST never waits for the watcher.';
COMMENT ON COLUMN chain_activity.chain_id IS 'CAIP-2 id of the chain.';
COMMENT ON COLUMN chain_activity.active_until IS 'Until when.';

COMMENT ON TABLE watched_chains IS
    'How far each chain has been read, and who reads it. Every write of the watcher locks the row and compares the epoch, so that a'
    ' process that was paused past its lease writes nothing.';
COMMENT ON COLUMN watched_chains.chain_id IS 'CAIP-2 id of the chain.';
COMMENT ON COLUMN watched_chains.holder IS 'The process that reads it.';
COMMENT ON COLUMN watched_chains.epoch IS 'Number of the lease; who takes the lease begins a new one.';
COMMENT ON COLUMN watched_chains.lease_until IS 'Until when the holder alone reads it, by the database''s clock.';
COMMENT ON COLUMN watched_chains.head_number IS 'Newest block of the chain; NULL before the first read.';
COMMENT ON COLUMN watched_chains.confirmed_block IS 'Newest block that is as deep as confirmations asks; NULL before the first read.';
COMMENT ON COLUMN watched_chains.final_block IS 'Newest block that is permanent; NULL before the first read.';
COMMENT ON COLUMN watched_chains.cursor_block IS 'Newest block that is not read again: all effects up to it are recorded.';
COMMENT ON COLUMN watched_chains.stopped IS
    'Why the chain is not followed: a final block has changed. core chains resume clears it; NULL while it is followed.';
COMMENT ON COLUMN watched_chains.read_at IS 'When the head was seen, by the database''s clock; NULL before the first read.';
COMMENT ON COLUMN watched_chains.read_block IS
    'Newest block whose events were read; what is recorded above it may come from before a reorganization.';
COMMENT ON COLUMN watched_chains.read_block_time IS 'Time of read_block by the chain''s clock.';
COMMENT ON COLUMN watched_chains.complete_until IS 'Time by the chain''s clock up to which each block was read twice.';
COMMENT ON COLUMN watched_chains.unopened_until IS
    'Up to which deadline orders without a known opening were compared with their settlers; NULL for none. Later ones do not expire'
    ' for some minutes.';

COMMENT ON TABLE watchers IS
    'Processes that are alive and the chains that each can follow, among which chains are shared by rendezvous hashing: a process '
    'hands over what is in another''s share, and takes what is in its own or what nobody has held for the time of a lease.';
COMMENT ON COLUMN watchers.holder IS 'The process.';
COMMENT ON COLUMN watchers.chains IS 'CAIP-2 ids of the chains that it can follow.';
COMMENT ON COLUMN watchers.alive_until IS 'Until when it counts as alive.';

COMMENT ON TABLE chain_anchors IS
    'Blocks with known hashes, those above the final block and the newest at or under it: where a chain agrees with one, everything'
    ' below is as it was read.';
COMMENT ON COLUMN chain_anchors.chain_id IS 'CAIP-2 id of the chain.';
COMMENT ON COLUMN chain_anchors.number IS 'Number of the block.';
COMMENT ON COLUMN chain_anchors.hash IS 'Hash of the block.';

COMMENT ON TABLE screening_hits IS
    'Where addresses of the operator''s list were met, one row an hour for each account, address and stage. Kept as long as '
    'audit_log.';
COMMENT ON COLUMN screening_hits.id IS 'Derived from account, address, stage and hour, so that all cores store one row.';
COMMENT ON COLUMN screening_hits.account_id IS 'The account; NULL for a wallet that has none.';
COMMENT ON COLUMN screening_hits.key_id IS 'The API key; NULL for none.';
COMMENT ON COLUMN screening_hits.environment IS 'test or live; NULL for a wallet, which signs in to both.';
COMMENT ON COLUMN screening_hits.stage IS 'Where: create, quote, hand-out, chain or siwe.';
COMMENT ON COLUMN screening_hits.side IS 'Whose address: source, destination or wallet.';
COMMENT ON COLUMN screening_hits.address IS 'The address.';
COMMENT ON COLUMN screening_hits.list_label IS 'Label of the entry in the list; empty for none.';
COMMENT ON COLUMN screening_hits.intent_id IS 'The intent; NULL for none.';
COMMENT ON COLUMN screening_hits.request_id IS 'Id of the HTTP request; empty for none.';
COMMENT ON COLUMN screening_hits.at IS 'When.';

COMMENT ON TABLE screening_accepted IS 'Files that core takes although they are smaller than the ones before, for a day.';
COMMENT ON COLUMN screening_accepted.sha256 IS 'SHA-256 of the file.';
COMMENT ON COLUMN screening_accepted.accepted_at IS 'When the operator accepted it.';
