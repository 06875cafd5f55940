import { isAddressEqual, type Account, type Address, type Client as ViemClient, type Hash, type Hex, type WalletCallReceipt } from 'viem'
import { getAddresses, getCapabilities, getChainId, waitForCallsStatus, waitForTransactionReceipt } from 'viem/actions'
import { systemClock } from './clock.js'
import { ApiError } from './error.js'
import type { SendCalls } from './records.js'

/** Why a transaction was not carried out, or an intent not signed. */
export type SendErrorReason = 'NO_TX' | 'EXPIRED' | 'OTHER_CHAIN' | 'OTHER_ACCOUNT' | 'WRONG_DIGEST' | 'REVERTED'

/**
 * A transaction or signature that was refused before the wallet was asked, or one of whose calls the wallet or the chain has refused: nothing was paid, and of a
 * batch nothing that is not reported.
 */
export class SendError extends Error {
  override readonly name = 'SendError'
  constructor(readonly reason: SendErrorReason, message: string) {
    super(message)
  }
}

/**
 * Calls that the wallet has taken as one, and of which it does not say what became: it names no transaction, or did not answer in time. They may
 * be carried out, so send them again only once you know. `batch` is their id: `waitForCallsStatus(wallet, { id: batch })` of viem asks once more,
 * and the last receipt's hash is the one to report, or of a batch each receipt's with the intents that it has paid for.
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

/** Milliseconds to wait for a block, by default. */
export const minedTimeout = 300_000

/** A call of a transaction. */
export interface Call {
  to: Address
  value: bigint
  data: Hex
}

/** What signs: the wallet's account, or the one that an injected wallet lists. Refuses another chain or account than the wallet's. */
export async function signerOf(wallet: ViemClient, { chainId, from }: { chainId: number; from: string }): Promise<Account | Address> {
  const chain = await getChainId(wallet)
  if (chain !== chainId) throw new SendError('OTHER_CHAIN', `the wallet is on chain ${chain}: switch it to ${chainId}`)
  const { account } = wallet
  const addresses = account ? [account.address] : await getAddresses(wallet)
  if (addresses.some((address) => isAddressEqual(address, from as Address))) return account ?? (from as Address)
  throw new SendError('OTHER_ACCOUNT', `the wallet has ${addresses.join(', ') || 'no account'}: switch it to ${from}`)
}

/** Whether a wallet may know wallet_sendCalls. Behind an account whose key is here there is a node, which signs nothing for it. */
export const takesCalls = (wallet: ViemClient) => wallet.account?.type !== 'local'

/** Asks the wallet whether it executes calls as one. */
export async function atomic(wallet: ViemClient, { from, chainId }: { from: string; chainId: number }): Promise<boolean> {
  if (!takesCalls(wallet)) return false
  try {
    const { atomic } = await getCapabilities(wallet, { account: from as Address, chainId })
    return atomic?.status === 'supported' || atomic?.status === 'ready'
  } catch {
    return false // most wallets do not know the question
  }
}

/** The code of EIP-5792 for more calls than the wallet takes in one request. */
export const tooManyCalls = 5740

// unsupported are the codes by which a wallet says that it sends no such calls and has sent nothing (JSON-RPC, EIP-1193, EIP-5792). 5750 is the
// owner's refusal to upgrade the account for it.
const unsupported = new Set([-32601, -32004, 4200, 5700, 5710, tooManyCalls, 5750, 5760])

/** Gives the wallet calls in one request and returns their id, or the code by which it says that it sends no such calls and has sent nothing. */
export async function sendCalls(wallet: ViemClient, { version, chainId, from, atomicRequired, calls }: SendCalls): Promise<{ id: string } | { refused: number }> {
  const params = {
    version, chainId: chainId as Hex, from: from as Address, atomicRequired,
    calls: calls.map(({ to, value, data }) => ({ to: to as Address, value: value as Hex, data: data as Hex })),
  }
  try {
    const answer: { id: string } | string = await wallet.request({ method: 'wallet_sendCalls', params: [params] })
    return { id: typeof answer === 'string' ? answer : answer.id } // a text in the first versions of EIP-5792
  } catch (error) {
    const refused = codeOf(error)
    if (unsupported.has(refused)) return { refused }
    throw error
  }
}

// codeOf is the code of a wallet's error; some wallets, and viem where it does not know the code, wrap the one that counts.
function codeOf(error: unknown): number {
  const { code, data, cause } = (error ?? {}) as { code?: number; data?: { originalError?: { code?: number } }; cause?: { code?: number } }
  return data?.originalError?.code ?? (code !== undefined && code !== -1 ? code : cause?.code ?? NaN)
}

/** What became of calls that a wallet has taken. */
export interface CallsOutcome {
  /** Of the transactions, in their order. */
  receipts: WalletCallReceipt<bigint, 'success' | 'reverted'>[]
  /** Whether only some of the calls were carried out. */
  partly: boolean
}

/**
 * Waits until calls that the wallet has taken are in a block. A status of 400 to 599 (EIP-5792) says that none was carried out, one of 600 to 699 that
 * some were, and no other that any was not.
 */
export async function outcomeOf(wallet: ViemClient, id: string, timeout: number): Promise<CallsOutcome> {
  const { status, statusCode, receipts } = await waitForCallsStatus(wallet, {
    id, timeout, status: ({ status, statusCode }) => status === 'success' || statusCode >= 300,
  }).catch((cause: unknown) => { throw new OutcomeUnknownError(id, cause) })
  if (statusCode >= 400 && statusCode < 500) throw new SendError('REVERTED', `the wallet did not send the calls ${id}, status ${statusCode}`)
  if (statusCode >= 500 && statusCode < 600) throw reverted(`the calls ${id}`)
  const partly = statusCode >= 600 && statusCode < 700
  if (!partly && (status !== 'success' || !receipts?.length)) throw new OutcomeUnknownError(id)
  return { receipts: receipts ?? [], partly }
}

/** The error of what was reverted. */
export const reverted = (what: string) => new SendError('REVERTED', `the chain reverted ${what}; transfers.preflight says what is missing`)

/** Waits until a transaction is in a block. */
export async function mined(node: ViemClient, hash: Hash, timeout: number): Promise<void> {
  const { status } = await waitForTransactionReceipt(node, { hash, timeout })
  if (status !== 'success') throw reverted(hash)
}

const maxReports = 3
const maxPause = 60_000 // milliseconds

/** Makes a report, again where the service says when to: then it has not taken it. */
export async function patiently<Record>(report: () => Promise<Record>): Promise<Record> {
  for (let tries = 1; ; tries++) {
    try {
      return await report()
    } catch (cause) {
      const pause = cause instanceof ApiError ? cause.retryAfter : undefined
      if (pause === undefined || tries === maxReports) throw cause
      await systemClock.sleep(Math.min(pause, maxPause))
    }
  }
}
