// A wallet signs in with Ethereum (EIP-4361): the message and its signature are viem's, the calls are the published
// client's. PUBLIC_URL is where browsers are told to find the service.
import assert from 'node:assert/strict'
import { createSiweMessage } from 'viem/siwe'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { answered, browser, linkWallet, newcomer, refused, status } from './browser.mjs'

const site = new URL(process.env.PUBLIC_URL)
const chainId = 11155111
const wallet = privateKeyToAccount(generatePrivateKey())

// signed is what a wallet hands over; changes are to the message that it is asked to sign.
async function signed(client, changes = {}, signer = wallet) {
  const { nonce } = await answered(client.siwe.nonce({ walletAddress: wallet.address, chainId }))
  const message = createSiweMessage({
    domain: site.host, address: wallet.address, uri: site.origin, version: '1', chainId, nonce,
    statement: 'Sign in to manage API keys.', issuedAt: new Date(), expirationTime: new Date(Date.now() + 300_000), ...changes,
  })
  return { message, signature: await signer.signMessage({ message }), walletAddress: wallet.address, chainId }
}

async function signsIn() {
  const client = browser()
  const proof = await signed(client)
  const { success, token, user } = await answered(client.siwe.verify(proof))
  assert.deepEqual([success, token, user.walletAddress, user.chainId], [true, null, wallet.address, chainId])
  const { session } = await answered(client.getSession())
  assert.equal(session.userId, user.id)
  const { key } = await answered(client.apiKey.create({ name: 'of a wallet' }))
  assert.equal(await status(key), 200)

  const thief = browser()
  await unproven(thief, proof)
  assert.equal(await answered(thief.getSession()), null)

  const later = browser()
  assert.equal((await answered(later.siwe.verify(await signed(later)))).user.id, user.id, 'a wallet has one account')
  assert.deepEqual((await answered(later.apiKey.list())).apiKeys.map((k) => k.name), ['of a wallet'])
}

async function unproven(client, proof) {
  const { data, error } = await client.siwe.verify(proof)
  assert.equal(data, null)
  assert.ok([400, 401].includes(error.status) && error.code && error.message, JSON.stringify(error))
}

async function isRefused() {
  const client = browser()
  const stranger = privateKeyToAccount(generatePrivateKey())
  await unproven(client, await signed(client, { domain: 'elsewhere.example' }))
  await unproven(client, await signed(client, {}, stranger))
  assert.equal(await answered(client.getSession()), null)
}

async function linksAndUnlinks() {
  const { client, user, email, password } = await newcomer()
  const elsewhere = browser()
  await answered(elsewhere.signIn.email({ email, password }))
  const own = privateKeyToAccount(generatePrivateKey())
  const proof = async () => ({ ...await signed(client, { address: own.address }, own), walletAddress: own.address })
  assert.deepEqual(await answered(linkWallet(client, await proof())), { status: true })
  await refused(linkWallet(client, await signed(client)), 409, 'SOCIAL_ACCOUNT_ALREADY_LINKED')
  const ways = (await answered(client.listAccounts())).map(({ providerId, accountId, userId }) => ({ providerId, accountId, userId }))
  assert.deepEqual(ways, [
    { providerId: 'credential', accountId: user.id, userId: user.id }, { providerId: 'siwe', accountId: own.address, userId: user.id },
  ])
  const byWallet = browser()
  assert.equal((await answered(byWallet.siwe.verify(await proof()))).user.id, user.id)

  assert.deepEqual(await answered(client.unlinkAccount({ providerId: 'siwe', accountId: own.address })), { status: true })
  await refused(client.unlinkAccount({ providerId: 'siwe' }), 400, 'ACCOUNT_NOT_FOUND')
  for (const ended of [elsewhere, byWallet]) assert.equal(await answered(ended.getSession()), null)
  assert.equal((await answered(client.getSession())).user.id, user.id)
  const alone = browser()
  assert.notEqual((await answered(alone.siwe.verify(await proof()))).user.id, user.id)
  await refused(alone.unlinkAccount({ providerId: 'siwe' }), 400, 'FAILED_TO_UNLINK_LAST_ACCOUNT')
}

for (const step of [signsIn, isRefused, linksAndUnlinks]) {
  await step()
  console.log(step.name)
}
