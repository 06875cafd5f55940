import { hashTypedData, type Address, type Client as ViemClient, type Hex, type TypedDataDefinition } from 'viem'
import { call, getAddresses, getChainId, sendTransaction, signTypedData } from 'viem/actions'
import type { Transfer, TypedData } from './records.js'
import { reported, type SendOptions } from './send.js'
import { SendError, signerOf } from './wallet.js'

/**
 * Has a viem wallet sign an intent that was made with `signing`, and returns the signature for `transfers.submitSignature`. The user needs no gas, but
 * for `permit2` once the allowance of `signing.allowance`. Refuses with a SendError what cannot be signed any more, is of another chain or account than
 * the wallet's, or has a digest that is not that of the typed data.
 */
export async function sign(wallet: ViemClient, { id, status, signing, source }: Transfer): Promise<Hex> {
  const { typedData, digest, expiresAt } = signing ?? {}
  if (!typedData) throw new SendError('NO_TX', `transfer ${id} is ${status} and has nothing to sign; read it again, or create another with signing`)
  if (Date.parse(expiresAt!) <= Date.now()) throw new SendError('EXPIRED', `transfer ${id} expired at ${expiresAt}; create another`)
  if (digestOf(typedData) !== digest) throw new SendError('WRONG_DIGEST', `the typed data of transfer ${id} are not those of its digest ${digest}; do not sign them`)
  const from = source.account.slice(source.account.lastIndexOf(':') + 1)
  const account = await signerOf(wallet, { chainId: typedData.domain.chainId, from })
  return signTypedData(wallet, { account, ...definitionOf(typedData) })
}

/** The hash of typed data (EIP-712), which is what a signature is of. */
export const digestOf = (typedData: TypedData): Hex => hashTypedData(definitionOf(typedData))

// definitionOf is the same for viem, which types what the service has as JSON.
const definitionOf = (typedData: TypedData) => typedData as unknown as TypedDataDefinition

/**
 * Sends the transaction of a signed intent from a viem wallet, whose account need not be the user's and pays the gas, reports the hash and returns the
 * record. A transaction that would revert now is not sent: the user may have moved the money since. Fails with a ReportError, which has the hash, where it was sent and not reported.
 */
export async function relay(wallet: ViemClient, { id }: { id: string }, { client, publicClient }: Omit<SendOptions, 'timeout'>): Promise<Transfer> {
  const { tx: { chainId, to, data } } = await client.transfers.relay(id)
  const chain = await getChainId(wallet)
  if (chain !== chainId) throw new SendError('OTHER_CHAIN', `the wallet is on chain ${chain}: switch it to ${chainId}`)
  const account = wallet.account ?? (await getAddresses(wallet))[0]
  if (!account) throw new SendError('OTHER_ACCOUNT', 'the wallet has no account')
  const transaction = { account, to: to as Address, data: data as Hex }
  await call(publicClient ?? wallet, transaction)
  const hash = await sendTransaction(wallet, { ...transaction, chain: wallet.chain ?? null })
  return reported(client, id, hash)
}
