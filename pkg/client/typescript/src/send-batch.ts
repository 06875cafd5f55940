import { hexToNumber, type Client as ViemClient, type Hash, type Hex } from 'viem'
import type { Client } from './client.js'
import type { BatchCallsRequest, ExcludedTransfer } from './records.js'
import { sendInTurn } from './send.js'
import {
  minedTimeout, OutcomeUnknownError, outcomeOf, patiently, sendCalls, SendError, signerOf, takesCalls, tooManyCalls, type CallsOutcome, type SendTxOptions,
} from './wallet.js'

/** With what to send a batch. */
export interface SendBatchOptions extends SendTxOptions {
  /** Has the batch and its calls, and is told the hashes. */
  client: Pick<Client, 'batches' | 'transfers'>
  /** How many calls the wallet is given in one request, 2 to 200; 10 by default, which every wallet takes that takes any. */
  maxCalls?: number | undefined
}

/** A transaction that has paid for intents of a batch. */
export interface BatchTransaction {
  hash: Hash
  /** The ids of the intents that it has paid for. */
  transfers: string[]
}

/** What became of a batch. */
export interface SentBatch {
  /** What was sent and reported, in order. */
  sent: BatchTransaction[]
  /** The intents that no calls pay for, to be sent one by one with `send`. Those that are paid or have ended are not among them. */
  excluded: ExcludedTransfer[]
}

/**
 * Transactions that have paid for intents of a batch and of which the service could not be told. Report each later with `batches.report`, before the
 * batch is sent again: until then the service hands out their calls once more.
 */
export class BatchReportError extends Error {
  override readonly name = 'BatchReportError'
  constructor(readonly transactions: BatchTransaction[], cause: unknown) {
    const hashes = transactions.map(({ hash }) => hash).join(', ')
    super(`sent ${hashes}, but the service could not be told; report each by batches.report before you send the batch again`, { cause })
  }
}

const defaultMaxCalls = 10
const leastMaxCalls = 2 // an approval and the call that needs it

/**
 * Sends the intents of a batch with a viem wallet, as many in one request as `maxCalls` lets it (EIP-5792), and reports the hashes. A wallet that takes
 * fewer calls is asked again with fewer; where it takes none, or its owner declines the upgrade that needs, the intents are sent in turn.
 *
 * It ends with the first request that fails: what was sent before is reported, and sending the batch again goes on with the rest. Fails with a
 * SendError where the request has another chain or account than the wallet's, or was reverted: then nothing was paid that is not reported. Fails with
 * an OutcomeUnknownError, which has the id of the calls, where they may be carried out, and with a BatchReportError or ReportError where intents were
 * paid and not reported: after these, send the batch again only once the hashes are reported.
 */
export async function sendBatch(wallet: ViemClient, { id }: { id: string }, options: SendBatchOptions): Promise<SentBatch> {
  const { client, maxCalls = defaultMaxCalls } = options
  const sent: BatchTransaction[] = []
  const paid = new Set<string>()
  let most = maxCalls
  let inTurn = !takesCalls(wallet)
  for (;;) {
    // Asked before each request, because while the wallet waits for its owner intents expire or are cancelled.
    const { requests, excluded } = await client.batches.calls(id, { 'max-calls': most })
    const request = requests[0]
    if (!request) return { sent, excluded: excluded.filter((one) => one.reason !== 'STATUS') }
    const again = request.transfers.find((transfer) => paid.has(transfer))
    if (again !== undefined) throw new Error(`the service hands out the calls of transfer ${again} again, which was sent; report this`)
    const chainId = hexToNumber(request.calls.chainId as Hex)
    await signerOf(wallet, { chainId, from: request.calls.from })
    const taken = inTurn ? undefined : await sendCalls(wallet, request.calls)
    if (taken && 'refused' in taken) {
      const count = request.calls.calls.length
      if (taken.refused === tooManyCalls && count > leastMaxCalls) most = Math.max(leastMaxCalls, Math.floor(count / 2))
      else inTurn = true
      continue
    }
    const transactions = taken ? await reportCalls(wallet, id, request, taken.id, options) : await payInTurn(wallet, request, options)
    sent.push(...transactions)
    for (const { transfers } of transactions) for (const transfer of transfers) paid.add(transfer)
  }
}

// reportCalls waits for what became of a request that the wallet has taken, and reports each transaction with the intents that it has paid for.
async function reportCalls(
  wallet: ViemClient, batch: string, request: BatchCallsRequest, id: string, { client, timeout = minedTimeout }: SendBatchOptions,
): Promise<BatchTransaction[]> {
  const transactions = paidBy(request, await outcomeOf(wallet, id, timeout))
  if (!transactions) throw new OutcomeUnknownError(id)
  const unreported: BatchTransaction[] = []
  let cause: unknown
  for (const transaction of transactions) {
    await patiently(() => client.batches.report(batch, transaction.hash, transaction.transfers)).catch((error: unknown) => {
      unreported.push(transaction)
      cause ??= error
    })
  }
  if (unreported.length > 0) throw new BatchReportError(unreported, cause)
  const count = transactions.reduce((sum, { transfers }) => sum + transfers.length, 0)
  const { length } = request.transfers
  if (count < length) {
    const message = `the chain carried out the calls ${id} for ${count} of ${length} transfers, which are reported; transfers.preflight says what the others miss`
    throw new SendError('REVERTED', message)
  }
  return transactions
}

// The function selector of approve(address,uint256) (ERC-20).
const approve = '0x095ea7b3'

// paidBy assigns the intents of a request to the transactions that have paid for them: all to the only one, or, where the wallet has sent the calls one
// after the other, each to that of its own call, if that is not reverted. It is undefined where the receipts do not tell.
function paidBy({ transfers, calls: { calls } }: BatchCallsRequest, { receipts, partly }: CallsOutcome): BatchTransaction[] | undefined {
  const [only, ...more] = receipts
  if (only?.status === 'success' && more.length === 0 && !partly) return [{ hash: only.transactionHash, transfers }]
  const own = [...calls.keys()].filter((n) => !calls[n]!.data.startsWith(approve))
  if (receipts.length !== calls.length || own.length !== transfers.length) return undefined
  return own.flatMap((n, place) => receipts[n]!.status === 'success' ? [{ hash: receipts[n]!.transactionHash, transfers: [transfers[place]!] }] : [])
}

// payInTurn sends the intents of a request one by one.
async function payInTurn(wallet: ViemClient, { transfers }: BatchCallsRequest, { client, publicClient, timeout }: SendBatchOptions): Promise<BatchTransaction[]> {
  const sent: BatchTransaction[] = []
  for (const id of transfers) {
    sent.push({ hash: await sendInTurn(wallet, await client.transfers.get(id), { client, publicClient, timeout }), transfers: [id] })
  }
  return sent
}
