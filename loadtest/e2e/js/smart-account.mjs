// A smart account signs in with Ethereum: its owner's signature, as viem makes and wraps it. RPC_URL is the node of its chain, FACTORY deploys
// it, SENDER has ether there.
import assert from 'node:assert/strict'
import { createPublicClient, createTestClient, encodeFunctionData, http, parseAbi, walletActions } from 'viem'
import { foundry } from 'viem/chains'
import { createSiweMessage } from 'viem/siwe'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { serializeErc6492Signature } from 'viem/utils'
import { answered, browser, refused } from './browser.mjs'

const site = new URL(process.env.PUBLIC_URL)
const factory = process.env.FACTORY
const abi = parseAbi(['function create(address owner, bytes32 salt) returns (address)', 'function addressOf(address owner, bytes32 salt) view returns (address)'])
const node = createPublicClient({ chain: foundry, transport: http(process.env.RPC_URL) })
const sender = createTestClient({ chain: foundry, mode: 'anvil', transport: http(process.env.RPC_URL) }).extend(walletActions)
const owner = privateKeyToAccount(generatePrivateKey())
const args = [owner.address, '0x' + '07'.repeat(32)]
const address = await node.readContract({ address: factory, abi, functionName: 'addressOf', args })
const data = encodeFunctionData({ abi, functionName: 'create', args })

async function signed(client, { wrap = false, signer = owner, chainId = foundry.id } = {}) {
  const { nonce } = await answered(client.siwe.nonce({ walletAddress: address, chainId }))
  const message = createSiweMessage({ domain: site.host, address, uri: site.origin, version: '1', chainId, nonce })
  const signature = await signer.signMessage({ message })
  return { message, walletAddress: address, chainId, signature: wrap ? serializeErc6492Signature({ address: factory, data, signature }) : signature }
}

let first

async function signsInUndeployed() {
  const client = browser()
  await refused(client.siwe.verify(await signed(client)), 401, 'UNAUTHORIZED_INVALID_SIWE_SIGNATURE')
  const { user } = await answered(client.siwe.verify(await signed(client, { wrap: true })))
  assert.deepEqual([user.walletAddress, user.chainId], [address, foundry.id])
  assert.equal(await node.getCode({ address }), undefined, 'the check deploys nothing')
  assert.deepEqual((await answered(client.listAccounts())).map((way) => way.accountId), [`${address}:${foundry.id}`])
  first = user.id
}

async function signsInDeployed() {
  const hash = await sender.writeContract({ account: process.env.SENDER, address: factory, abi, functionName: 'create', args })
  await node.waitForTransactionReceipt({ hash })
  for (const wrap of [false, true]) {
    const client = browser()
    assert.equal((await answered(client.siwe.verify(await signed(client, { wrap })))).user.id, first)
  }
}

async function isRefused() {
  const client = browser()
  const signer = privateKeyToAccount(generatePrivateKey())
  for (const wrap of [false, true]) {
    await refused(client.siwe.verify(await signed(client, { wrap, signer })), 401, 'UNAUTHORIZED_INVALID_SIWE_SIGNATURE')
    await refused(client.siwe.verify(await signed(client, { wrap, chainId: 1 })), 401, 'UNAUTHORIZED_SIWE_CHAIN_WITHOUT_NODE')
  }
  assert.equal(await answered(client.getSession()), null)
}

for (const step of [signsInUndeployed, signsInDeployed, isRefused]) {
  await step()
  console.log(step.name)
}
