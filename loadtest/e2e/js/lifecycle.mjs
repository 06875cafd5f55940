// An account of its own creates intents of all kinds, computes the ids of their orders, signs and sends their transactions with viem, and
// follows their events to the end: as they come, sped up, replaced by other transactions, refunded, cancelled, and left until the deadline.
//
// Standard input is {gateway, chains: [{id, url, token, tether}, {…}]}: the URLs of the service and of two chains' nodes, and two test tokens
// on each, of which tether refuses to change an allowance that is not zero. A solver fills the orders, and a relay attests its fills.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import {
  concat, createPublicClient, createWalletClient, defineChain, encodeAbiParameters, encodePacked, erc20Abi, http, keccak256, parseAbiParameters, parseGwei,
} from 'viem'
import { generatePrivateKey, mnemonicToAccount, privateKeyToAccount } from 'viem/accounts'
import { createSiweMessage } from 'viem/siwe'

const { gateway, chains } = JSON.parse(readFileSync(0))
const [here, there] = chains
const native = '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE'

// Each scenario has a development account of its own, so that nobody else uses its nonces. The README's walk has the first one.
const development = (addressIndex) => mnemonicToAccount('test test test test test test test test test test test junk', { addressIndex })

const nodes = Object.fromEntries(chains.map(({ id, url }) => {
  const nativeCurrency = { name: 'Ether', symbol: 'ETH', decimals: 18 }
  const chain = defineChain({ id, name: `Chain ${id}`, nativeCurrency, rpcUrls: { default: { http: [url] } } })
  return [id, { chain, client: createPublicClient({ chain, transport: http(), pollingInterval: 200 }) }]
}))
const node = nodes[here.id].client
const walletOf = (account) => createWalletClient({ account, chain: nodes[here.id].chain, transport: http() })

// call is a request to the service. One over the key's limit, or one of which nothing was stored, is repeated when the answer says so.
async function call(method, path, body, headers) {
  const answer = await fetch(gateway + path, {
    method, headers: { 'content-type': 'application/json', origin: gateway, ...headers }, body: body && JSON.stringify(body),
  })
  if (answer.status === 429 || (answer.status === 503 && answer.headers.has('retry-after'))) {
    await pause(answer.headers.get('retry-after') * 1000)
    return call(method, path, body, headers)
  }
  const text = await answer.text()
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`)
  return { headers: answer.headers, body: JSON.parse(text) }
}

// newKey is a key of the account of a new wallet.
async function newKey() {
  const wallet = privateKeyToAccount(generatePrivateKey())
  const who = { walletAddress: wallet.address, chainId: here.id }
  const { nonce } = (await call('POST', '/auth/siwe/nonce', who)).body
  const message = createSiweMessage({ address: wallet.address, chainId: here.id, domain: new URL(gateway).host, nonce, uri: gateway, version: '1' })
  const { headers } = await call('POST', '/auth/siwe/verify', { ...who, message, signature: await wallet.signMessage({ message }) })
  const cookie = headers.getSetCookie().map((c) => c.split(';')[0]).join('; ')
  return (await call('POST', '/auth/api-key/create', { name: 'viem' }, { cookie })).body.key
}

const key = { 'x-api-key': await newKey() }
const report = (intent, hash) => call('POST', `/v2/transfers/${intent.id}/transaction`, { hash }, key)

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

// callsOf are the calls of a transaction. An allowance that is too small and not zero is reset first.
async function callsOf({ tx }) {
  const calls = tx.calls.calls.map(({ to, data, value }) => ({ to, data, value: BigInt(value) }))
  const resets = []
  for (const { token, owner, spender, amount, reset } of tx.allowances) {
    const query = { address: token.split(':').at(-1), abi: erc20Abi, functionName: 'allowance', args: [owner, spender] }
    const granted = await nodes[tx.chainId].client.readContract(query)
    if (granted > 0n && granted < BigInt(amount)) resets.push({ to: reset.to, data: reset.data, value: BigInt(reset.value) })
  }
  return [...resets, ...calls]
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

async function sendCalls(account, intent) {
  let hash
  for (const each of await callsOf(intent)) {
    hash = await walletOf(account).sendTransaction(each)
    await waitMined(node, hash)
  }
  return hash
}

const send = async ({ account, intent }) => report(intent, await sendCalls(account, intent))

// sendAfterReset sends an intent where an allowance stands that is too small.
async function sendAfterReset(scenario) {
  const [{ spender }] = scenario.intent.tx.allowances
  const approve = { address: here.tether, abi: erc20Abi, functionName: 'approve', args: [spender, 1n] }
  await waitMined(node, await walletOf(scenario.account).writeContract(approve))
  assert.equal((await callsOf(scenario.intent)).length, 3)
  await send(scenario)
}

// sendAndReplace sends the last call of an intent, and then another transaction with the same nonce and twice the fee, which the node
// mines in its place. Both wait in the pool for the transaction of the nonce before theirs.
async function sendAndReplace({ account, intent }, other) {
  const wallet = walletOf(account)
  const selfPayment = { to: account.address }
  const calls = await callsOf(intent)
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
  await sendCalls(account, (await call('GET', `/v2/transfers/${id}/refund`, undefined, key)).body)
}

const cancel = ({ intent }) => call('POST', `/v2/transfers/${intent.id}/cancel`, undefined, key)

const scenarios = [
  { name: 'transfer', kind: 'transfer', run: send, ends: 'confirmed' },
  { name: 'swap', kind: 'swap', run: send, ends: 'filled' },
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
  scenario.intent = (await call('POST', '/v2/transfers', { source: at(here, scenario.kind === 'tether bridge' ? here.tether : here.token, '1000'), destination, deadline }, key)).body
  assert.equal(orderId(scenario.intent.order), scenario.intent.orderId)
  assert.equal(scenario.intent.type, scenario.kind.split(' ').at(-1))
  scenario.steps = []
}

// follow reads the events until every scenario has ended.
async function follow() {
  const byID = Object.fromEntries(scenarios.map((scenario) => [scenario.intent.id, scenario]))
  for (let after = ''; !scenarios.every(({ steps, ends }) => steps.at(-1) === ends);) {
    const { events, next } = (await call('GET', `/v2/events?wait=25${after}`, undefined, key)).body
    for (const { type, sequence, data } of events) {
      const scenario = byID[data.id]
      scenario.steps.push(data.to)
      assert.equal(sequence, scenario.steps.length)
      if (type === 'transfer.refundable') await refund(scenario)
    }
    after = `&after=${encodeURIComponent(next)}`
  }
}

// print writes the statuses of an intent, and the transactions that were sent for it.
async function print({ name, intent, steps, run }) {
  const read = async () => (await call('GET', `/v2/transfers/${intent.id}`, undefined, key)).body
  let record = await read()
  while (run !== send && record.transactions[0]?.state === 'pending') { // the one that lost
    await waitBlocks(1n)
    record = await read()
  }
  const statuses = steps.filter((status, n) => status !== steps[n - 1]) // it is submitted again by another transaction
  const sent = record.transactions.filter(({ role }) => ['send', 'open'].includes(role))
    .map(({ role, state, hash }) => `${role} ${state !== 'replaced' && hash === record.metadata.hash ? 'carries' : state}`)
  console.log([`${name}: ${[...statuses, record.failure].filter(Boolean).join(' ')}`, ...sent].join(', '))
}

for (const [index, scenario] of scenarios.entries()) await create(scenario, index)
await Promise.all([follow(), ...scenarios.map((scenario) => scenario.run(scenario))])
for (const scenario of scenarios) await print(scenario)
