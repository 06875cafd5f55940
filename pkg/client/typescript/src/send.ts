import { erc20Abi, toHex, type Address, type Client as ViemClient, type Hash, type Hex } from 'viem'
import { readContract, sendTransaction } from 'viem/actions'
import type { Transaction, Transfer } from './records.js'
import type { Transfers } from './transfers.js'
import {
  atomic, mined, minedTimeout, outcomeOf, patiently, ReportError, reverted, sendCalls, SendError, signerOf, type Call, type SendTxOptions,
} from './wallet.js'

/** With what to send an intent. */
export interface SendOptions extends SendTxOptions {
  /** Tells the service the hash: a client with a key, or with the client token of the intent. */
  client: { transfers: Pick<Transfers, 'report'> }
}

/**
 * Sends the transaction of an intent with a viem wallet, reports its hash and returns the record. A wallet that executes calls as one is given
 * all in one request (EIP-5792); otherwise, and where its owner declines the upgrade that needs, they are sent in turn. Refuses with a SendError a
 * `tx` that is null, expired, or of another chain or account than the wallet's. Fails with an OutcomeUnknownError, which has the id of the calls,
 * where they may be carried out, and with a ReportError, which has the hash, where it was sent and not reported.
 */
export async function send(wallet: ViemClient, transfer: Transfer, options: SendOptions): Promise<Transfer> {
  return (await sendBy(sendTx, wallet, transfer, options)).record
}

/** As `send`, but one call after the other. Returns the hash, once its transaction is in a block. */
export async function sendInTurn(wallet: ViemClient, transfer: Transfer, options: SendOptions): Promise<Hash> {
  const { hash } = await sendBy(sendTxInTurn, wallet, transfer, options)
  await mined(options.publicClient ?? wallet, hash, options.timeout ?? minedTimeout)
  return hash
}

async function sendBy(sendTx: SendTx, wallet: ViemClient, transfer: Transfer, { client, ...options }: SendOptions): Promise<{ hash: Hash; record: Transfer }> {
  const { id, status, tx, deadline, quote } = transfer
  if (!tx) throw new SendError('NO_TX', `transfer ${id} is ${status} and has nothing to send; read it again, or create another`)
  const expiry = Math.min(Date.parse(deadline), quote ? Date.parse(quote.expiresAt) : Infinity)
  if (expiry <= Date.now()) throw new SendError('EXPIRED', `transfer ${id} expired at ${new Date(expiry).toISOString()}; create another`)
  const hash = await sendTx(wallet, tx, options)
  return { hash, record: await reported(client, id, hash) }
}

/** Tells the service a hash and returns the record. */
export const reported = (client: { transfers: Pick<Transfers, 'report'> }, id: string, hash: Hash): Promise<Transfer> =>
  patiently(() => client.transfers.report(id, hash)).catch((cause: unknown) => { throw new ReportError(hash, cause) })

type SendTx = (wallet: ViemClient, tx: Transaction, options?: SendTxOptions) => Promise<Hash>

/** Sends a transaction, for example that of a refund, and returns the hash of its last call. Refuses one of another chain or account. */
export async function sendTx(wallet: ViemClient, tx: Transaction, options: SendTxOptions = {}): Promise<Hash> {
  await signerOf(wallet, tx)
  const calls = await callsOf(options.publicClient ?? wallet, tx)
  if (calls.length === 1 || !await atomic(wallet, tx)) return inTurn(wallet, tx, calls, options)
  const taken = await sendCalls(wallet, { ...tx.calls, calls: calls.map(({ value, ...call }) => ({ ...call, value: toHex(value) })) })
  if ('refused' in taken) return inTurn(wallet, tx, calls, options)
  const { receipts, partly } = await outcomeOf(wallet, taken.id, options.timeout ?? minedTimeout)
  if (partly) throw reverted(`some of the calls ${taken.id}`)
  return receipts.at(-1)!.transactionHash // there is one at least
}

const sendTxInTurn: SendTx = async (wallet, tx, options = {}) => inTurn(wallet, tx, await callsOf(options.publicClient ?? wallet, tx), options)

// inTurn sends one call after the other and returns the hash of the last.
async function inTurn(wallet: ViemClient, tx: Transaction, calls: Call[], { publicClient, timeout = minedTimeout }: SendTxOptions): Promise<Hash> {
  const account = await signerOf(wallet, tx)
  const node = publicClient ?? wallet
  let hash: Hash | undefined
  for (const call of calls) {
    if (hash) await mined(node, hash, timeout)
    hash = await sendTransaction(wallet, { account, chain: wallet.chain ?? null, ...call })
  }
  return hash as Hash // the transaction itself is always among the calls
}

/**
 * The calls that a transaction needs now: an allowance that is enough is not granted again, and one that is neither enough nor zero is reset
 * first, because some tokens refuse to change it.
 */
export async function callsOf(node: ViemClient, tx: Transaction): Promise<Call[]> {
  const calls: Call[] = []
  for (const { token, owner, spender, amount, approve, reset } of tx.allowances) {
    const query = { address: token.slice(token.lastIndexOf(':') + 1) as Address, abi: erc20Abi, functionName: 'allowance' } as const
    const granted = await readContract(node, { ...query, args: [owner as Address, spender as Address] })
    if (granted >= BigInt(amount)) continue
    if (granted > 0n) calls.push(callOf(reset))
    calls.push(callOf(approve))
  }
  return [...calls, callOf(tx)]
}

const callOf = ({ to, value, data }: { to: string; value: string; data: string }): Call => ({ to: to as Address, value: BigInt(value), data: data as Hex })
