// An account of its own creates intents of all kinds with the TypeScript client, computes the ids of their orders, sends their transactions
// with viem, and follows their events to the end: as they come, sped up, replaced by other transactions, refunded, cancelled, and left until the
// deadline. One is made of a quote, waited for, and told of by a webhook. Two batches are sent by wallets, one that takes several calls in one request
// and one that does not. Others are only signed, and another account sends their transactions.
//
// Standard input is {gateway, chains: [{id, url, token, tether, euro}, {…}]}: the URLs of the service and of two chains' nodes, and three test tokens
// on each: tether refuses to change an allowance that is not zero, and euro takes authorizations (ERC-3009). A solver fills the orders, and a
// relay attests its fills.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { createClient, verifyWebhook } from '@transfer-intents/client'
import { callsOf, relay, send as sendIntent, sendBatch, sendTx, sign as signIntent } from '@transfer-intents/client/viem'
import {
  concat, createPublicClient, createWalletClient, custom, defineChain, encodeAbiParameters, encodePacked, erc20Abi, http, keccak256, parseAbi,
  parseAbiParameters, parseGwei, parseSignature,
} from 'viem'
import { generatePrivateKey, mnemonicToAccount, privateKeyToAccount } from 'viem/accounts'
import { createSiweMessage } from 'viem/siwe'

const { gateway, chains } = JSON.parse(readFileSync(0))
const [here, there] = chains
const native = '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE'

// Each scenario has a development account of its own, so that nobody else uses its nonces. The README's walk has the first one.
const development = (addressIndex) => mnemonicToAccount('test test test test test test test test test test test junk', { addressIndex })

const nativeCurrency = { name: 'Ether', symbol: 'ETH', decimals: 18 }
const chain = defineChain({ id: here.id, name: 'Here', nativeCurrency, rpcUrls: { default: { http: [here.url] } } })
const node = createPublicClient({ chain, transport: http(), pollingInterval: 200 })
const walletOf = (account) => createWalletClient({ account, chain, transport: http(), pollingInterval: 200 })

// signIn is a request of the sign-in, which is no part of the client.
async function signIn(path, body, headers) {
  const answer = await fetch(gateway + path, {
    method: 'POST', headers: { 'content-type': 'application/json', origin: gateway, ...headers }, body: JSON.stringify(body),
  })
  const text = await answer.text()
  assert.ok(answer.ok, `${path}: ${answer.status} ${text}`)
  return { headers: answer.headers, body: JSON.parse(text) }
}

// newKey is a key of the account of a new wallet.
async function newKey() {
  const wallet = privateKeyToAccount(generatePrivateKey())
  const who = { walletAddress: wallet.address, chainId: here.id }
  const { nonce } = (await signIn('/auth/siwe/nonce', who)).body
  const message = createSiweMessage({ address: wallet.address, chainId: here.id, domain: new URL(gateway).host, nonce, uri: gateway, version: '1' })
  const { headers } = await signIn('/auth/siwe/verify', { ...who, message, signature: await wallet.signMessage({ message }) })
  const cookie = headers.getSetCookie().map((c) => c.split(';')[0]).join('; ')
  return (await signIn('/auth/api-key/create', { name: 'viem' }, { cookie })).body.key
}

const client = createClient({ baseUrl: gateway, key: await newKey() })

// patient repeats a call that the client makes once, where the key's limit was reached.
async function patient(call) {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (error.code !== 'RATE_LIMITED') throw error
      await pause(error.retryAfter)
    }
  }
}

const report = (intent, hash) => patient(() => client.transfers.report(intent.id, hash))

const outputsType = parseAbiParameters(
  '(bytes32 oracle, bytes32 settler, uint256 chainId, bytes32 token, uint256 amount, bytes32 recipient, bytes callbackData, bytes context)[]')

// orderId computes the id of an order from its named fields.
function orderId({ inputSettler, user, nonce, originChainId, expires, fillDeadline, inputOracle, inputs, outputs }) {
  const packed = concat(inputs.map(({ token, amount }) => encodePacked(['uint256', 'uint256'], [BigInt(token), BigInt(amount)])))
  const encoded = encodeAbiParameters(outputsType, [outputs.map((output) => ({ ...output, chainId: BigInt(output.chainId), amount: BigInt(output.amount) }))])
  return keccak256(encodePacked(
    ['uint256', 'address', 'address', 'uint256', 'uint32', 'uint32', 'address', 'bytes32', 'bytes'],
    [BigInt(originChainId), inputSettler, user, BigInt(nonce), expires, fillDeadline, inputOracle, keccak256(packed), encoded]))
}

async function waitMined(client, hash) {
  assert.equal((await client.waitForTransactionReceipt({ hash })).status, 'success')
}

async function waitBlocks(count) {
  const last = await node.getBlockNumber({ cacheTime: 0 }) + count
  await new Promise((resolve, reject) => {
    const stop = node.watchBlockNumber({ emitOnBegin: true, onError: reject, onBlockNumber: (n) => n >= last && resolve(stop()) })
  })
}

const send = ({ account, intent }) => sendIntent(walletOf(account), intent, { client })

// sendAfterReset sends an intent where an allowance stands that is too small.
async function sendAfterReset(scenario) {
  const [{ spender }] = scenario.intent.tx.allowances
  const approve = { address: here.tether, abi: erc20Abi, functionName: 'approve', args: [spender, 1n] }
  await waitMined(node, await walletOf(scenario.account).writeContract(approve))
  assert.equal((await callsOf(node, scenario.intent.tx)).length, 3)
  await send(scenario)
}

// sendAndReplace sends the last call of an intent, and then another transaction with the same nonce and twice the fee, which the node
// mines in its place. Both wait in the pool for the transaction of the nonce before theirs.
async function sendAndReplace({ account, intent }, other) {
  const wallet = walletOf(account)
  const selfPayment = { to: account.address }
  const calls = await callsOf(node, intent.tx)
  const last = calls.pop()
  const before = calls.length ? calls : [selfPayment]
  const nonce = await node.getTransactionCount({ address: account.address }) + before.length
  const priced = (gwei) => ({ nonce, gas: 1_000_000n, maxPriorityFeePerGas: parseGwei(`${gwei}`), maxFeePerGas: parseGwei(`${10 * gwei}`) })
  await report(intent, await wallet.sendTransaction({ ...last, ...priced(1) }))
  await waitBlocks(3n) // the node forgets a transaction that is replaced, so the service must have seen its nonce
  const hash = await wallet.sendTransaction({ ...other(last, selfPayment), ...priced(2) })
  for (const each of before) await waitMined(node, await wallet.sendTransaction(each))
  await waitMined(node, hash)
  return hash
}

const speedUp = (scenario) => sendAndReplace(scenario, (last) => last)
const replace = (scenario) => sendAndReplace(scenario, (_, selfPayment) => selfPayment)

// refund asks an order back that nobody has filled. It is refundable: the clock of its chain is past its expiry.
async function refund({ account, intent: { id } }) {
  await sendTx(walletOf(account), (await client.transfers.refund(id)).tx)
}

const cancel = ({ intent }) => patient(() => client.transfers.cancel(intent.id))

// sendAndWait sends an intent and waits until it is filled, and for the webhook that tells so.
async function sendAndWait(scenario) {
  const { id, quote } = scenario.intent
  assert.equal(quote.id, scenario.quoteId)
  await send(scenario)
  const { status, final } = await client.transfers.waitFor(id, { until: 'filled', timeout: 120_000 })
  assert.deepEqual([status, final], ['filled', true])
  await delivered
}

// delivered ends with the webhook of the quoted swap. Every delivery must be signed.
let delivered, server
async function listen() {
  let done, fail, secret
  delivered = new Promise((resolve, reject) => [done, fail] = [resolve, reject])
  delivered.catch(() => {}) // whoever awaits it is told
  server = createServer(async (request, response) => {
    try {
      const event = await verifyWebhook(await buffer(request), request.headers, secret)
      response.writeHead(204).end()
      if (event.type === 'transfer.filled' && event.data.id === quoted.intent?.id) done()
    } catch (error) {
      response.writeHead(401).end()
      fail(error)
    }
  })
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  secret = (await client.webhooks.create({ url: `http://127.0.0.1:${server.address().port}/`, types: ['transfer.*'] })).secret
}

const quoted = { name: 'quoted swap', kind: 'swap', run: sendAndWait, ends: 'filled' }

const scenarios = [
  { name: 'transfer', kind: 'transfer', run: send, ends: 'confirmed' },
  { name: 'swap', kind: 'swap', run: send, ends: 'filled' },
  quoted,
  { name: 'bridge after a reset', kind: 'tether bridge', run: sendAfterReset, ends: 'filled' },
  { name: 'sped-up transfer', kind: 'transfer', run: speedUp, ends: 'confirmed' }, // its second hash is found by the nonce
  { name: 'sped-up bridge', kind: 'bridge', run: async (scenario) => report(scenario.intent, await speedUp(scenario)), ends: 'filled' },
  { name: 'replaced transfer', kind: 'transfer', run: replace, ends: 'failed' },
  { name: 'replaced swap', kind: 'swap', run: replace, ends: 'failed' },
  { name: 'refunded bridge', kind: 'unpayable bridge', run: send, ends: 'refunded', seconds: 64 },
  { name: 'cancelled swap', kind: 'swap', run: cancel, ends: 'cancelled' },
  { name: 'unsent bridge', kind: 'bridge', run: () => {}, ends: 'expired', seconds: 64 },
]

async function create(scenario, index) {
  scenario.account = development(index + 1)
  const at = (chain, token, amount) => ({ account: `eip155:${chain.id}:${scenario.account.address}`, token: `eip155:${chain.id}:${token}`, amount })
  const destination = {
    transfer: { account: `eip155:${here.id}:0x000000000000000000000000000000000000dEaD` },
    swap: at(here, native, '990'),
    bridge: at(there, there.token, '990'),
    'tether bridge': at(there, there.token, '990'),
    'unpayable bridge': at(there, native, `1${'0'.repeat(30)}`), // no solver has as much
  }[scenario.kind]
  const deadline = scenario.seconds && new Date(Math.ceil(Date.now() / 1000 + scenario.seconds) * 1000).toISOString()
  const source = at(here, scenario.kind === 'tether bridge' ? here.tether : here.token, '1000')
  if (scenario === quoted) scenario.quoteId = await quoteOf(source, destination)
  scenario.intent = await client.transfers.create(scenario.quoteId ? { quoteId: scenario.quoteId } : { source, destination, deadline })
  assert.equal(orderId(scenario.intent.order), scenario.intent.orderId)
  assert.equal(scenario.intent.type, scenario.kind.split(' ').at(-1))
  scenario.steps = []
}

async function quoteOf(source, { account, token }) {
  const { quotes } = await patient(() => client.quotes.create({ source, destination: { account, token } }))
  return quotes[0].id
}

// follow reads the events until every scenario has ended.
async function follow() {
  const byID = Object.fromEntries(scenarios.map((scenario) => [scenario.intent.id, scenario]))
  for await (const { type, sequence, data } of client.events.follow()) {
    const scenario = byID[data.id]
    scenario.steps.push(data.to)
    assert.equal(sequence, scenario.steps.length)
    if (type === 'transfer.refundable') await refund(scenario)
    if (scenarios.every(({ steps, ends }) => steps.at(-1) === ends)) return
  }
}

// print writes the statuses of an intent, and the transactions that were sent for it.
async function print({ name, intent, steps, run }) {
  const read = () => client.transfers.get(intent.id)
  let record = await read()
  while (![send, sendAndWait].includes(run) && record.transactions[0]?.state === 'pending') { // the one that lost
    await waitBlocks(1n)
    record = await read()
  }
  const statuses = steps.filter((status, n) => status !== steps[n - 1]) // it is submitted again by another transaction
  const sent = record.transactions.filter(({ role }) => ['send', 'open'].includes(role))
    .map(({ role, state, hash }) => `${role} ${state !== 'replaced' && hash === record.metadata.hash ? 'carries' : state}`)
  console.log([`${name}: ${[...statuses, record.failure].filter(Boolean).join(' ')}`, ...sent].join(', '))
}

// atOnce is a wallet that takes several calls in one request and sends them one after the other, as one without a smart account does: its id of
// the calls is the number of their list.
function atOnce(account) {
  const wallet = walletOf(account)
  const taken = []
  const request = async ({ method, params }) => {
    if (method === 'wallet_sendCalls') {
      const hashes = []
      for (const { to, value, data } of params[0].calls) {
        hashes.push(await wallet.sendTransaction({ to, value: BigInt(value), data }))
        await waitMined(node, hashes.at(-1))
      }
      return { id: `0x${taken.push(hashes)}` }
    }
    if (method !== 'wallet_getCallsStatus') return method === 'eth_accounts' ? [account.address] : node.request({ method, params })
    const receipts = await Promise.all(taken[Number(params[0]) - 1].map((hash) => node.request({ method: 'eth_getTransactionReceipt', params: [hash] })))
    return { version: '2.0.0', id: params[0], chainId: `0x${here.id.toString(16)}`, status: 200, atomic: false, receipts }
  }
  return createWalletClient({ chain, transport: custom({ request }, { retryCount: 0 }), pollingInterval: 200 })
}

// funded is a new account with the tokens of the chain.
async function funded() {
  const account = privateKeyToAccount(generatePrivateKey())
  await node.request({ method: 'faucet_fund', params: [account.address] })
  return account
}

const permitAbi = parseAbi(['function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)'])

// paySigned has a new account sign a transfer, a bridge and two swaps, and another one send their transactions: the user sends one alone, the
// approval of a token without permits. Of two more swaps one is signed and taken back, after which nobody can open it, not even with the transaction
// of before, and one is signed and left. It returns how they have ended.
async function paySigned() {
  const [user, relayer] = [await funded(), await funded()]
  const client = createClient({ baseUrl: gateway, key: await newKey() }) // whose limit nobody else uses
  const own = `eip155:${here.id}:${user.address}`
  const made = async (signing, token, destination, deadline) => {
    const source = { account: own, token: `eip155:${here.id}:${token}`, amount: '1000' }
    const intent = await client.transfers.create({ signing, source, destination, deadline })
    assert.equal(intent.tx, null)
    return intent
  }
  const sign = async (intent) => {
    const signature = await signIntent(walletOf(user), intent)
    const signed = await client.transfers.submitSignature(intent.id, signature)
    assert.ok(signed.signing.signedAt && !JSON.stringify(signed).includes(signature.slice(2)))
  }
  const grant = async ({ signing: { allowance: { approve, owner, spender, amount }, permit } }) => {
    if (!permit) return walletOf(user).sendTransaction({ to: approve.to, data: approve.data })
    const { r, s, yParity } = parseSignature(await walletOf(user).signTypedData(permit))
    const args = [owner, spender, BigInt(amount), BigInt(permit.message.deadline), 27 + yParity, r, s]
    return walletOf(relayer).writeContract({ address: approve.to, abi: permitAbi, functionName: 'permit', args })
  }
  const swap = { account: own, token: `eip155:${here.id}:${native}`, amount: '990' }
  const left = await made('erc3009', here.euro, swap, new Date(Math.ceil(Date.now() / 1000 + 64) * 1000).toISOString())
  await sign(left)
  const relayed = [
    await made('erc3009', here.euro, { account: `eip155:${here.id}:0x000000000000000000000000000000000000dEaD` }),
    await made('erc3009', here.euro, { account: `eip155:${there.id}:${user.address}`, token: `eip155:${there.id}:${there.token}`, amount: '990' }),
    await made('permit2', here.euro, swap),
    await made('permit2', here.token, swap),
  ]
  for (const intent of relayed) {
    if (intent.signing.allowance) await waitMined(node, await grant(intent))
    await assert.rejects(relay(walletOf(relayer), intent, { client }), { code: 'NOT_SIGNED' })
    await sign(intent)
    await waitMined(node, (await relay(walletOf(relayer), intent, { client })).metadata.hash)
  }
  const revoked = await made('permit2', here.token, swap)
  await waitMined(node, await grant(revoked))
  await sign(revoked)
  const { tx: { to, data } } = await client.transfers.relay(revoked.id)
  await node.call({ to, data })
  const { signing: { revoke } } = await client.transfers.cancel(revoked.id)
  await assert.rejects(client.transfers.relay(revoked.id), { code: 'STATUS_CONFLICT' })
  await waitMined(node, await sendTx(walletOf(user), revoke))
  const invalidNonce = '0x756688fe'
  await assert.rejects(node.call({ to, data }), (error) => error.walk(({ data }) => data === invalidNonce) !== null)
  const ends = []
  for (const { id, type } of [...relayed, revoked, left]) {
    ends.push((await client.transfers.waitFor(id, { timeout: 120_000, until: type === 'transfer' ? 'confirmed' : 'filled' })).status)
  }
  await assert.rejects(client.transfers.relay(left.id), { code: 'STATUS_CONFLICT' })
  return ends.join(' ')
}

// payBatch has a new account create three payments, two of them equal, and a swap, and a wallet pay for them. It returns how they have ended.
async function payBatch(walletOf, maxCalls) {
  const account = await funded()
  const client = createClient({ baseUrl: gateway, key: await newKey() }) // whose limit nobody else uses
  const own = `eip155:${here.id}:${account.address}`
  const item = (amount, destination) => ({ source: { account: own, token: `eip155:${here.id}:${here.token}`, amount }, destination })
  const paid = { account: `eip155:${here.id}:0x000000000000000000000000000000000000dEaD` }
  const items = [item('500', paid), item('500', paid), item('501', paid), item('1000', { account: own, token: `eip155:${here.id}:${native}`, amount: '990' })]
  const options = { idempotencyKey: 'payroll' }
  const [batch, ...more] = await client.batches.create(items, options)
  const ids = batch.transfers.map(({ id }) => id)
  assert.deepEqual([more, batch.count, ids], [[], 4, [...ids].sort()])
  assert.deepEqual((await client.batches.create(items, options))[0].transfers.map(({ id }) => id), ids, 'a repeat makes nothing')
  const { sent, excluded } = await sendBatch(walletOf(account), batch, { client, maxCalls })
  assert.deepEqual([sent.map(({ transfers }) => transfers), excluded], [ids.map((id) => [id]), []])
  assert.deepEqual(await sendBatch(walletOf(account), batch, { client, maxCalls }), { sent: [], excluded: [] }, 'nothing is sent twice')
  const ends = await Promise.all(ids.map((id) => client.transfers.waitFor(id, { timeout: 120_000 })))
  assert.ok(ends.every(({ metadata }, n) => metadata.hash === sent[n].hash))
  const { statuses } = await client.batches.get(batch.id)
  assert.deepEqual(statuses, { confirmed: 3, filled: 1 })
  const { transfers } = await client.transfers.list({ batch: batch.id })
  assert.deepEqual(transfers.map(({ id }) => id).sort(), ids)
  return ends.map(({ status }) => status).join(' ')
}

await listen()
for (const [index, scenario] of scenarios.entries()) await create(scenario, index)
const batches = Promise.all([payBatch(walletOf), payBatch(atOnce, 3)])
batches.catch(() => {}) // whoever awaits it is told
const signed = paySigned()
signed.catch(() => {})
await Promise.all([follow(), batches, signed, ...scenarios.map((scenario) => scenario.run(scenario))])
for (const scenario of scenarios) await print(scenario)
for (const [n, ends] of (await batches).entries()) console.log(`batch ${['in turn', 'at once'][n]}: ${ends}`)
console.log(`signed: ${await signed}`)
server.close()
server.closeAllConnections()
