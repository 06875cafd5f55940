// An account of its own creates an intent of each kind, signs and sends it with viem, and reads in its events how each ends.
// GATEWAY_URL, CHAIN_31337_RPC_URL and TOKENS (JSON {usdc, weth}) name the service, the local chain and its tokens.
import assert from 'node:assert/strict'
import { createPublicClient, createWalletClient, defineChain, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'

const gateway = process.env.GATEWAY_URL
const { usdc, weth } = JSON.parse(process.env.TOKENS)
const url = process.env.CHAIN_31337_RPC_URL
// The second development account, so that nobody else uses its nonces.
const account = privateKeyToAccount('0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d')
const chain = defineChain({ id: 31337, name: 'Local chain A', nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 }, rpcUrls: { default: { http: [url] } } })
const node = createPublicClient({ chain, transport: http(), pollingInterval: 200 })
const wallet = createWalletClient({ account, chain, transport: http() })

async function call(method, path, body, headers) {
  const answer = await fetch(gateway + path, {
    method, headers: { 'content-type': 'application/json', origin: gateway, ...headers }, body: body && JSON.stringify(body),
  })
  const text = await answer.text()
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`)
  return { headers: answer.headers, body: JSON.parse(text) }
}

async function newKey() {
  const email = `viem-${Date.now()}@example.com`
  const { headers } = await call('POST', '/auth/sign-up/email', { name: 'viem', email, password: 'correct horse battery' })
  const cookie = headers.getSetCookie().map((c) => c.split(';')[0]).join('; ')
  return (await call('POST', '/auth/api-key/create', { name: 'viem' }, { cookie })).body.key
}

const key = { 'x-api-key': await newKey() }
const leg = (chain, token, amount) => ({ account: `eip155:${chain}:${account.address}`, token: `eip155:${chain}:${token}`, amount })
const source = leg(31337, usdc, '1000000')
const kinds = {
  transfer: { account: 'eip155:31337:0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC' },
  swap: leg(31337, weth, '300000000000000'),
  bridge: leg(31338, usdc, '990000'),
}

const intents = {}
for (const [kind, destination] of Object.entries(kinds)) {
  const intent = (await call('POST', '/v2/transfers', { source, destination }, key)).body
  assert.equal(intent.type, kind)
  let hash
  for (const { to, data, value } of intent.tx.calls.calls) {
    hash = await wallet.sendTransaction({ to, data, value: BigInt(value) })
    assert.equal((await node.waitForTransactionReceipt({ hash })).status, 'success')
  }
  await call('POST', `/v2/transfers/${intent.id}/transaction`, { hash }, key)
  intents[intent.id] = { kind, steps: [] }
}

const last = { transfer: 'confirmed', swap: 'filled', bridge: 'filled' }
const ended = ({ kind, steps }) => steps.at(-1) === last[kind]
let after = ''
while (!Object.values(intents).every(ended)) {
  const { events, next } = (await call('GET', `/v2/events?wait=25${after}`, undefined, key)).body
  for (const { sequence, data } of events) {
    const { steps } = intents[data.id]
    steps.push(data.to)
    assert.equal(sequence, steps.length)
  }
  after = `&after=${encodeURIComponent(next)}`
}
for (const { kind, steps } of Object.values(intents)) console.log(kind, ...steps)
