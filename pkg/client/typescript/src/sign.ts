import { encodeFunctionData, hashTypedData, hexToNumber, parseAbi, size, slice } from 'viem'
import type { Address, Client as ViemClient, Hex, TypedDataDefinition } from 'viem'
import { call, getAddresses, getChainId, sendTransaction, signTypedData } from 'viem/actions'
import type { Client } from './client.js'
import type { Relay, Transfer, TypedData } from './records.js'
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

const tokenFunctions = parseAbi([
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
])

/**
 * The transaction that gives a token the signature of typed data: of `signing.permit`, by the token's `permit`, and of `signing.revoke` where that is typed
 * data, by its `cancelAuthorization`. Any account may send it and pays the gas; it is not reported.
 */
export function tokenCall({ primaryType, domain, message }: TypedData, signature: Hex): Relay['tx'] {
  const { owner, spender, value, deadline, authorizer, nonce } = message as Record<string, any>
  const byKey = size(signature) === 65
  let data: Hex
  if (primaryType === 'Permit') {
    if (!byKey) throw new TypeError('a permit takes a signature of 65 bytes, by the key of its owner: send the approve of signing.allowance')
    const args = [owner, spender, BigInt(value), BigInt(deadline), ...vrs(signature)] as const
    data = encodeFunctionData({ abi: tokenFunctions, functionName: 'permit', args })
  } else if (primaryType === 'CancelAuthorization') {
    const args = byKey ? [authorizer, nonce, ...vrs(signature)] as const : [authorizer, nonce, signature] as const
    data = encodeFunctionData({ abi: tokenFunctions, functionName: 'cancelAuthorization', args })
  } else {
    throw new TypeError(`${primaryType} is no typed data for the token: give its signature to transfers.submitSignature`)
  }
  return { chainId: domain.chainId, to: domain.verifyingContract, value: '0', data }
}

function vrs(signature: Hex): [number, Hex, Hex] {
  const v = hexToNumber(slice(signature, 64))
  return [v < 2 ? v + 27 : v, slice(signature, 0, 32), slice(signature, 32, 64)]
}

/**
 * Has a viem wallet sign `signing.permit`, or `signing.revoke` where that is typed data, and returns the transaction for the token, which any account may
 * send: see tokenCall. Refuses with a SendError another chain or account than the wallet's.
 */
export async function signForToken(wallet: ViemClient, typedData: TypedData): Promise<Relay['tx']> {
  const { owner, authorizer } = typedData.message as Record<string, any>
  const account = await signerOf(wallet, { chainId: typedData.domain.chainId, from: owner ?? authorizer })
  return tokenCall(typedData, await signTypedData(wallet, { account, ...definitionOf(typedData) }))
}

/** With what to relay an intent. */
export interface RelayOptions extends Omit<SendOptions, 'timeout' | 'client'> {
  /** Has the transaction, and is told its hash. */
  client: Pick<Client, 'transfers'>
}

/**
 * Sends the transaction of a signed intent from a viem wallet, whose account need not be the user's and pays the gas, reports the hash and returns the
 * record. A transaction that would revert now is not sent: the user may have moved the money since. Fails with a ReportError, which has the hash, where it was sent and not reported.
 */
export async function relay(wallet: ViemClient, { id }: { id: string }, { client, publicClient }: RelayOptions): Promise<Transfer> {
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
