import { erc20Abi, isAddressEqual, type Account, type Address, type Client as ViemClient, type Hash, type Hex } from 'viem'
import {
  getAddresses, getCapabilities, getChainId, readContract, sendTransaction, waitForCallsStatus, waitForTransactionReceipt,
} from 'viem/actions'
import type { Client } from './client.js'
import { systemClock } from './clock.js'
import { ApiError } from './error.js'
import type { Transaction, Transfer } from './records.js'

/** Why a transaction was not carried out. */
export type SendErrorReason = 'NO_TX' | 'EXPIRED' | 'OTHER_CHAIN' | 'OTHER_ACCOUNT' | 'REVERTED'

/** A transaction that was refused before the wallet was asked, or one of whose calls the wallet or the chain has refused: nothing was paid. */
export class SendError extends Error {
  override readonly name = 'SendError'
  constructor(readonly reason: SendErrorReason, message: string) {
    super(message)
  }
}

/**
 * Calls that the wallet has taken as one, and of which it does not say what became: it names no transaction, or did not answer in time. They may
 * be carried out, so send them again only once you know. `batch` is their id: `waitForCallsStatus(wallet, { id: batch })` of viem asks once more,
 * and the last receipt's hash is the one to report.
 */
export class OutcomeUnknownError extends Error {
  override readonly name = 'OutcomeUnknownError'
  constructor(readonly batch: string, cause?: unknown) {
    super(`the wallet has taken the calls as ${batch} and does not say what became of them; look there before you send them again`, { cause })
  }
}

/** A transaction that was sent and whose hash the service could not be told: report it later by `transfers.report`. */
export class ReportError extends Error {
  override readonly name = 'ReportError'
  constructor(readonly hash: Hash, cause: unknown) {
    super(`sent ${hash}, but the service could not be told; report it by transfers.report`, { cause })
  }
}

/** With what to send. */
export interface SendTxOptions {
  /** Reads the chain, in place of the wallet's own node. */
  publicClient?: ViemClient | undefined
  /** Milliseconds to wait for each transaction, or for a batch, to be mined; 5 minutes by default. */
  timeout?: number | undefined
}

/** With what to send an intent. */
export interface SendOptions extends SendTxOptions {
  /** Tells the service the hash. */
  client: Pick<Client, 'transfers'>
}

const maxReports = 3
const maxPause = 60_000 // milliseconds

/** A call of a transaction. */
export interface Call {
  to: Address
  value: bigint
  data: Hex
}

/**
 * Sends the transaction of an intent with a viem wallet, reports its hash and returns the record. A wallet that executes calls as one is given
 * all in one request (EIP-5792); otherwise, and where its owner declines the upgrade that needs, they are sent in turn. Refuses with a SendError a
 * `tx` that is null, expired, or of another chain or account than the wallet's. Fails with an OutcomeUnknownError, which has the id of the calls,
 * where they may be carried out, and with a ReportError, which has the hash, where it was sent and not reported.
 */
export async function send(wallet: ViemClient, transfer: Transfer, { client, ...options }: SendOptions): Promise<Transfer> {
  const { id, status, tx, deadline, quote } = transfer
  if (!tx) throw new SendError('NO_TX', `transfer ${id} is ${status} and has nothing to send; read it again, or create another`)
  const expiry = Math.min(Date.parse(deadline), quote ? Date.parse(quote.expiresAt) : Infinity)
  if (expiry <= Date.now()) throw new SendError('EXPIRED', `transfer ${id} expired at ${new Date(expiry).toISOString()}; create another`)
  const hash = await sendTx(wallet, tx, options)
  return reported(client, id, hash)
}

// reported tells the hash, again where the service says when to: then it has not taken it.
async function reported({ transfers }: SendOptions['client'], id: string, hash: Hash): Promise<Transfer> {
  for (let tries = 1; ; tries++) {
    try {
      return await transfers.report(id, hash)
    } catch (cause) {
      const pause = cause instanceof ApiError ? cause.retryAfter : undefined
      if (pause === undefined || tries === maxReports) throw new ReportError(hash, cause)
      await systemClock.sleep(Math.min(pause, maxPause))
    }
  }
}

/** Sends a transaction, for example that of a refund, and returns the hash of its last call. Refuses one of another chain or account. */
export async function sendTx(wallet: ViemClient, tx: Transaction, { publicClient, timeout = 300_000 }: SendTxOptions = {}): Promise<Hash> {
  const chain = await getChainId(wallet)
  if (chain !== tx.chainId) throw new SendError('OTHER_CHAIN', `the wallet is on chain ${chain}: switch it to ${tx.chainId}`)
  const account = await accountOf(wallet, tx)
  const node = publicClient ?? wallet
  const calls = await callsOf(node, tx)
  const batch = calls.length > 1 && await atomic(wallet, tx) ? await sendBatch(wallet, tx, calls) : undefined
  if (batch !== undefined) return hashOfBatch(wallet, batch, timeout)
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

// accountOf is what signs: the wallet's account, or the one that an injected wallet lists.
async function accountOf(wallet: ViemClient, tx: Transaction): Promise<Account | Address> {
  const from = tx.from as Address
  const { account } = wallet
  const addresses = account ? [account.address] : await getAddresses(wallet)
  if (addresses.some((address) => isAddressEqual(address, from))) return account ?? from
  throw new SendError('OTHER_ACCOUNT', `the wallet has ${addresses.join(', ') || 'no account'}: switch it to ${from}`)
}

// atomic asks the wallet whether it executes calls as one. Behind an account whose key is here there is a node, which signs nothing for it.
async function atomic(wallet: ViemClient, { from, chainId }: Transaction): Promise<boolean> {
  if (wallet.account?.type === 'local') return false
  try {
    const { atomic } = await getCapabilities(wallet, { account: from as Address, chainId })
    return atomic?.status === 'supported' || atomic?.status === 'ready'
  } catch {
    return false // most wallets do not know the question
  }
}

// unsupported are the codes by which a wallet says that it sends no such calls and has sent nothing (JSON-RPC, EIP-1193, EIP-5792). 5750 is the
// owner's refusal to upgrade the account for it.
const unsupported = new Set([-32601, -32004, 4200, 5700, 5710, 5740, 5750, 5760])

// sendBatch gives the wallet all calls in one request and returns their id, or undefined where it sends no such calls.
async function sendBatch(wallet: ViemClient, tx: Transaction, calls: Call[]): Promise<string | undefined> {
  const batch = calls.map(({ to, value, data }) => ({ to, value: `0x${value.toString(16)}` as Hex, data }))
  const { version, chainId, from, atomicRequired } = tx.calls
  const params = { version, chainId: chainId as Hex, from: from as Address, atomicRequired, calls: batch }
  try {
    const answer: { id: string } | string = await wallet.request({ method: 'wallet_sendCalls', params: [params] })
    return typeof answer === 'string' ? answer : answer.id // a text in the first versions of EIP-5792
  } catch (error) {
    if (unsupported.has(codeOf(error))) return undefined
    throw error
  }
}

// codeOf is the code of a wallet's error; some wallets, and viem where it does not know the code, wrap the one that counts.
function codeOf(error: unknown): number {
  const { code, data, cause } = (error ?? {}) as { code?: number; data?: { originalError?: { code?: number } }; cause?: { code?: number } }
  return data?.originalError?.code ?? (code !== undefined && code !== -1 ? code : cause?.code ?? NaN)
}

// hashOfBatch waits until calls that the wallet has taken are in a block, and returns the hash of their last transaction. Only a status of 400
// to 699 (EIP-5792) says that they were not carried out.
async function hashOfBatch(wallet: ViemClient, id: string, timeout: number): Promise<Hash> {
  const { status, statusCode, receipts } = await waitForCallsStatus(wallet, {
    id, timeout, status: ({ status, statusCode }) => status === 'success' || statusCode >= 300,
  }).catch((cause: unknown) => { throw new OutcomeUnknownError(id, cause) })
  if (statusCode >= 400 && statusCode < 500) throw new SendError('REVERTED', `the wallet did not send the calls ${id}, status ${statusCode}`)
  if (statusCode >= 500 && statusCode < 700) throw new SendError('REVERTED', `the chain reverted the calls ${id}, status ${statusCode}; transfers.preflight says what is missing`)
  const hash = receipts?.at(-1)?.transactionHash
  if (status !== 'success' || !hash) throw new OutcomeUnknownError(id)
  return hash
}

async function mined(node: ViemClient, hash: Hash, timeout: number): Promise<void> {
  const { status } = await waitForTransactionReceipt(node, { hash, timeout })
  if (status !== 'success') throw new SendError('REVERTED', `the chain reverted ${hash}; transfers.preflight says what is missing`)
}
