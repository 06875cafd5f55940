-- What each table and column means, which \d+ shows. COMMENT takes a lock that lets others read and write. A later migration that adds a column or
-- changes a meaning has a COMMENT of its own.

COMMENT ON TABLE transfers IS
    'Transfer intents, of every type. The order and the transaction to sign are not stored, because both are computed from the row.'
    ' Every index that lists use begins with the account, the primary key too: an index on the id alone would tempt the planner to '
    'walk the intents of all accounts. There are no foreign keys: what a row names is never removed, and checking them would make '
    'all inserts lock the same rows. Kept for ever, or for CORE_TRANSFERS_RETENTION after the last change of an intent that has '
    'ended.';
COMMENT ON COLUMN transfers.account_id IS 'The account that made the intent.';
COMMENT ON COLUMN transfers.id IS 'UUIDv7, so that the order of ids is that of time.';
COMMENT ON COLUMN transfers.key_id IS 'The API key that made it, or that a client token is of.';
COMMENT ON COLUMN transfers.environment IS 'test or live: that of the source chain when the intent was made.';
COMMENT ON COLUMN transfers.type IS 'transfer (keeps the token and the chain), swap (changes the token) or bridge (crosses chains).';
COMMENT ON COLUMN transfers.status IS 'created, submitted, confirmed, filled, refunded, failed, expired or cancelled.';
COMMENT ON COLUMN transfers.order_id IS 'Hash of the order, 32 bytes, by which settlers'' events name it.';
COMMENT ON COLUMN transfers.source_chain IS 'CAIP-2 id of the source chain.';
COMMENT ON COLUMN transfers.source_account IS 'Address that sends.';
COMMENT ON COLUMN transfers.source_token IS 'Address of the token that is sent.';
COMMENT ON COLUMN transfers.source_amount IS 'Base units that are sent, exact.';
COMMENT ON COLUMN transfers.destination_chain IS 'CAIP-2 id of the destination chain.';
COMMENT ON COLUMN transfers.destination_account IS 'Address of the recipient.';
COMMENT ON COLUMN transfers.destination_token IS 'Address of the token that the recipient gets.';
COMMENT ON COLUMN transfers.destination_amount IS 'Base units that the recipient gets, exact. A transfer delivers what it sends.';
COMMENT ON COLUMN transfers.origin_domain IS 'Of version 0.1.0, unused.';
COMMENT ON COLUMN transfers.destination_domain IS 'Of version 0.1.0, unused.';
COMMENT ON COLUMN transfers.origin_settler IS
    'Input settler of the order, as at creation, so that no import changes an order; empty for a transfer.';
COMMENT ON COLUMN transfers.destination_settler IS 'Output settler of the order, as at creation; empty for a transfer.';
COMMENT ON COLUMN transfers.order_scheme IS
    'Encoding of the order, oif-v1/StandardOrder. An intent of another scheme, of version 0.1.0, has no order any more. No CHECK: '
    'adding one would read the whole table under a lock.';
COMMENT ON COLUMN transfers.deadline IS 'Until when the order can be filled; an intent that nobody sent expires then.';
COMMENT ON COLUMN transfers.reference IS 'The client''s own name for the intent, 1 to 128 characters; NULL for none.';
COMMENT ON COLUMN transfers.idempotency_key IS
    'Idempotency key of the request, unique in its account and environment; NULL for none, or once it is erased. A repeated request'
    ' is compared with the row.';
COMMENT ON COLUMN transfers.hash IS
    'Hash of the transaction that the intent goes by: the attempt that carries it; NULL while nothing was sent.';
COMMENT ON COLUMN transfers.failure IS
    'Why it failed: TX_REVERTED, TX_REPLACED, TX_MISMATCH or ORDER_ID_MISMATCH; NULL unless it has failed.';
COMMENT ON COLUMN transfers.created_at IS
    'Time of the INSERT statement by the database''s clock. Others see the row once its transaction commits, seconds later at most.';
COMMENT ON COLUMN transfers.updated_at IS 'When the last transition had locked the row, by the database''s clock.';
COMMENT ON COLUMN transfers.cancelled_at IS
    'When the client cancelled it, also if its transaction was seen on chain afterwards; NULL for never.';
COMMENT ON COLUMN transfers.refundable_at IS
    'When the event that the order can be refunded was written; NULL while it was not, and once the intent has moved on.';
COMMENT ON COLUMN transfers.deployment IS 'Name of the settlement that executes the order, as at creation; NULL for a transfer.';
COMMENT ON COLUMN transfers.input_oracle IS 'Oracle that proves the fill to the input settler; NULL for a transfer.';
COMMENT ON COLUMN transfers.output_oracle IS 'Oracle on the destination chain, to which the output settler reports; NULL for a transfer.';
COMMENT ON COLUMN transfers.expires IS 'From when the order can be refunded; NULL for a transfer, which expires with its deadline.';
COMMENT ON COLUMN transfers.quote_id IS 'The quote that it was made from, which is removed before the intent; NULL for none.';
COMMENT ON COLUMN transfers.quote_provider IS 'Copy of quotes.provider; NULL for none.';
COMMENT ON COLUMN transfers.quote_expires_at IS 'Copy of quotes.expires_at; NULL for none.';
COMMENT ON COLUMN transfers.answered IS 'Whether a fill, claim or refund of the order is known, or a client has simulated the status.';
COMMENT ON COLUMN transfers.batch_id IS 'The batch that it was made in; NULL for one that was made alone.';
COMMENT ON COLUMN transfers.signing IS 'How the user signs the intent; NULL for one whose user sends a transaction.';
COMMENT ON COLUMN transfers.signature IS
    'The last valid signature; NULL before it, once the intent is executed or cancelled, and an hour after its deadline.';
COMMENT ON COLUMN transfers.signed_at IS 'When the last valid signature came, which stays once the signature is erased.';
COMMENT ON COLUMN transfers.submit IS 'Whether the signed order is handed to the solver of its quote.';
COMMENT ON COLUMN transfers.submitted_at IS 'When the one attempt to hand it over began; NULL for none.';
COMMENT ON COLUMN transfers.submission_status IS
    'What the solver answered: received, rejected, error or failed; NULL where no answer is known.';
COMMENT ON COLUMN transfers.submission_detail IS 'What the solver said of it; NULL for nothing.';
COMMENT ON COLUMN transfers.submission_due_at IS 'When the solver is asked next what became of the order; NULL for never.';
COMMENT ON COLUMN transfers.labels IS
    'The client''s labels: a JSON object of texts in the order of its keys without whitespace, so that equal labels are equal texts;'
    ' NULL for none.';
COMMENT ON COLUMN transfers.simulated IS
    'Whether a client of the test environment set the status without a transaction. Such an intent has no hash, signature, '
    'submission or row in transactions, and is in no queue of the watcher.';

COMMENT ON TABLE batches IS
    'What one request made together. One statement inserts a batch, its intents and their first events, so that none is ever there '
    'without the others. Removed with the last of its intents.';
COMMENT ON COLUMN batches.account_id IS 'The account that made the batch.';
COMMENT ON COLUMN batches.id IS 'Batch id, a UUIDv7.';
COMMENT ON COLUMN batches.key_id IS 'The API key that made it.';
COMMENT ON COLUMN batches.environment IS 'test or live.';
COMMENT ON COLUMN batches.idempotency_key IS
    'Idempotency key of the request; batches and single intents have separate name spaces. It is replaced once it is erased.';
COMMENT ON COLUMN batches.count IS 'Number of intents in it.';
COMMENT ON COLUMN batches.created_at IS 'When it was made.';

COMMENT ON TABLE transfer_updates IS
    'What an intent was called before each change of its reference or labels. An event shows the row of the next change after it, '
    'or the intent''s own names where there is none; a repeated request is compared with the first row. Removed with the intent.';
COMMENT ON COLUMN transfer_updates.account_id IS 'The account of the intent.';
COMMENT ON COLUMN transfer_updates.transfer_id IS 'The intent.';
COMMENT ON COLUMN transfer_updates.sequence IS 'Sequence of the event of the change.';
COMMENT ON COLUMN transfer_updates.reference IS 'Reference before the change; NULL for none.';
COMMENT ON COLUMN transfer_updates.labels IS 'Labels before the change; NULL for none.';

COMMENT ON TABLE events IS
    'Every transition of every intent, written in the transaction of the transition. Kept for CORE_EVENTS_RETENTION; the newest of '
    'an intent stays with it, because the sequence goes on from there.';
COMMENT ON COLUMN events.account_id IS 'The account of the intent.';
COMMENT ON COLUMN events.xid IS 'Transaction that wrote the event, which orders events by visibility as in key_changes.';
COMMENT ON COLUMN events.id IS 'Serial number, by which the feed names the event.';
COMMENT ON COLUMN events.transfer_id IS 'The intent.';
COMMENT ON COLUMN events.from_status IS 'Status before; NULL for the first event.';
COMMENT ON COLUMN events.to_status IS 'Status after; the same where something else changed.';
COMMENT ON COLUMN events.hash IS 'transfers.hash after the transition; NULL where nothing was sent.';
COMMENT ON COLUMN events.failure IS 'transfers.failure after the transition; NULL unless it has failed.';
COMMENT ON COLUMN events.occurred_at IS 'When it happened, by the database''s clock.';
COMMENT ON COLUMN events.trigger IS
    'What caused the transition, in the words of package transfer; NULL in events of versions that did not write it.';
COMMENT ON COLUMN events.chain_id IS 'CAIP-2 id of the chain that caused it; NULL for a client.';
COMMENT ON COLUMN events.tx_hash IS 'Hash of the observed transaction; NULL for none.';
COMMENT ON COLUMN events.block_number IS 'Block of the observed transaction; NULL for none.';
COMMENT ON COLUMN events.sequence IS 'Place among the events of the intent, from 1 without gaps.';
COMMENT ON COLUMN events.environment IS
    'Environment of the intent in its first event, so that the feed need not read every new intent; NULL in later events.';
COMMENT ON COLUMN events.found IS 'transactions.found of the attempt at that time; NULL where nothing is known.';
COMMENT ON COLUMN events.simulated IS 'Whether a client of the test environment has simulated the transition.';

COMMENT ON TABLE transactions IS
    'Last known state of the transactions of intents: attempts that clients report, and transactions of settlers'' events. A row '
    'belongs to one account, so that nobody blocks the confirmation of another account''s intent by reporting its public hash first.'
    ' What becomes due is a queue by chain, time or block, and account: accounts take turns, and times are rounded up to an eighth '
    'of the delay so that many transactions of an account are few turns.';
COMMENT ON COLUMN transactions.account_id IS 'The account of the intent.';
COMMENT ON COLUMN transactions.transfer_id IS 'The intent.';
COMMENT ON COLUMN transactions.chain_id IS 'CAIP-2 id of the chain.';
COMMENT ON COLUMN transactions.hash IS 'Hash of the transaction.';
COMMENT ON COLUMN transactions.role IS 'What it does for the intent: send, open, fill, finalise or refund (settle is of version 0.1.0).';
COMMENT ON COLUMN transactions.state IS
    'pending, mined (has the effect), reverted, replaced (another transaction used the nonce), mismatch (lacks the effect), '
    'order_mismatch (opened another order), unsupported (nothing to judge by) or dropped (unknown long after the deadline).';
COMMENT ON COLUMN transactions.reported IS 'Whether the client reported the hash; otherwise it was found on chain.';
COMMENT ON COLUMN transactions.block_number IS 'Number of its block; NULL while it is in none.';
COMMENT ON COLUMN transactions.block_hash IS 'Hash of its block; NULL while it is in none.';
COMMENT ON COLUMN transactions.log_index IS
    'Index of the log of the effect in the block, -1 for a native transfer; NULL unless mined. Within an account a log confirms one'
    ' intent.';
COMMENT ON COLUMN transactions.confirmed_at IS
    'When its block was deep enough and a second provider had shown the same; NULL while it is provisional.';
COMMENT ON COLUMN transactions.sender IS 'Sender, once a provider has shown the transaction; NULL before.';
COMMENT ON COLUMN transactions.nonce IS 'Nonce of the sender; NULL with it.';
COMMENT ON COLUMN transactions.seen_at IS 'When it was first reported or seen.';
COMMENT ON COLUMN transactions.due_at IS 'When the watcher looks it up next: 1970 for an attempt that was never looked up; NULL for never.';
COMMENT ON COLUMN transactions.unknown_since IS 'Since when no provider has known it; NULL while one does.';
COMMENT ON COLUMN transactions.compare_at IS
    'When it is compared with other providers next, as it is deep enough and no other shows the same; NULL where none contradicts '
    'it, and again in another block.';
COMMENT ON COLUMN transactions.disputed_since IS 'Since when no other provider shows the same; NULL with compare_at.';
COMMENT ON COLUMN transactions.found IS
    'What there is instead of the effect: hash of the replacing transaction, id of the other order, or the other amount; NULL where'
    ' nothing is known.';

COMMENT ON TABLE disputed_transactions IS
    'Of the previous version, which keeps compare_at and disputed_since of transactions here. Rows are pruned a day after their '
    'last comparison.';
COMMENT ON COLUMN disputed_transactions.account_id IS 'As in transactions.';
COMMENT ON COLUMN disputed_transactions.transfer_id IS 'As in transactions.';
COMMENT ON COLUMN disputed_transactions.chain_id IS 'As in transactions.';
COMMENT ON COLUMN disputed_transactions.hash IS 'As in transactions.';
COMMENT ON COLUMN disputed_transactions.role IS 'As in transactions.';
COMMENT ON COLUMN disputed_transactions.block_hash IS 'Block that is disputed.';
COMMENT ON COLUMN disputed_transactions.disputed_since IS 'As in transactions.';
COMMENT ON COLUMN disputed_transactions.compare_at IS 'As in transactions.';

COMMENT ON TABLE quotes IS
    'What providers offered, with the contracts and the deadline of the order that an offer makes. Used ones are kept 30 days; '
    'unused ones a day after their end, the newest 10,000 of an account.';
COMMENT ON COLUMN quotes.account_id IS 'The account that asked.';
COMMENT ON COLUMN quotes.id IS 'Quote id, a UUIDv7.';
COMMENT ON COLUMN quotes.environment IS 'test or live.';
COMMENT ON COLUMN quotes.provider IS 'Name of the provider in CORE_QUOTE_PROVIDERS.';
COMMENT ON COLUMN quotes.kind IS 'exactInput or exactOutput: which amount the request fixed.';
COMMENT ON COLUMN quotes.type IS 'swap or bridge.';
COMMENT ON COLUMN quotes.source_chain IS 'As in transfers.';
COMMENT ON COLUMN quotes.source_account IS 'As in transfers.';
COMMENT ON COLUMN quotes.source_token IS 'As in transfers.';
COMMENT ON COLUMN quotes.source_amount IS 'Base units that are sent.';
COMMENT ON COLUMN quotes.destination_chain IS 'As in transfers.';
COMMENT ON COLUMN quotes.destination_account IS 'As in transfers.';
COMMENT ON COLUMN quotes.destination_token IS 'As in transfers.';
COMMENT ON COLUMN quotes.destination_amount IS 'Base units that the recipient gets.';
COMMENT ON COLUMN quotes.deadline IS 'Deadline of the intent that the quote makes.';
COMMENT ON COLUMN quotes.order_scheme IS 'Encoding of the order.';
COMMENT ON COLUMN quotes.deployment IS 'Name of the settlement that executes the order.';
COMMENT ON COLUMN quotes.input_settler IS 'Input settler of the order.';
COMMENT ON COLUMN quotes.output_settler IS 'Output settler of the order.';
COMMENT ON COLUMN quotes.input_oracle IS 'Oracle of the source chain.';
COMMENT ON COLUMN quotes.output_oracle IS 'Oracle of the destination chain.';
COMMENT ON COLUMN quotes.expires IS 'From when the order can be refunded.';
COMMENT ON COLUMN quotes.fees IS 'Fees that the provider stated, a JSON array.';
COMMENT ON COLUMN quotes.estimated_seconds IS 'How long the provider expects the fill to take; NULL if it says nothing.';
COMMENT ON COLUMN quotes.created_at IS 'When it was stored, by the database''s clock.';
COMMENT ON COLUMN quotes.expires_at IS 'Until when it can be used, by the database''s clock.';
COMMENT ON COLUMN quotes.transfer_id IS
    'The intent that it made, set in the transaction that inserts the intent by an update that requires NULL here, so that a quote '
    'makes one intent; NULL for none.';
COMMENT ON COLUMN quotes.default_deadline IS
    'Whether it was asked for without a deadline; an intent that is signed then gets a shorter default.';
