import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { toHex } from 'viem'
import { ApiError } from '../dist/index.js'
import { callsOf, OutcomeUnknownError, ReportError, send, SendError, sendTx } from '../dist/viem.js'
import { fixtures } from './server.mjs'
import { approval, from, hashOf, settler, token, walletOf } from './wallet.mjs'

const [approve, reset] = [approval(1000n), approval(0n)]
const open = { to: settler, value: '7', data: '0x1234' }

const tx = {
  chainId: 31337, from, ...open,
  allowances: [{ token: `eip155:31337:${token}`, owner: from, spender: settler, amount: '1000', approve, reset }],
  calls: { version: '2.0.0', chainId: '0x7a69', from, atomicRequired: false, calls: [approve, open].map((call) => ({ ...call, value: toHex(BigInt(call.value)) })) },
}
const transfer = { id: 'one', status: 'created', tx, deadline: new Date(Date.now() + 3600_000).toISOString(), quote: null }

const client = { transfers: { report: async (id, hash) => ({ id, status: 'submitted', hash }) } }
const wire = (calls) => calls.map((call) => ({ ...call, value: toHex(BigInt(call.value)) }))

for (const [allowance, expected] of [[0n, [approve, open]], [1n, [reset, approve, open]], [1000n, [open]], [5000n, [open]]]) {
  test(`in turn, from an allowance of ${allowance}`, async () => {
    const { wallet, sent } = walletOf({ allowance })
    assert.deepEqual(await callsOf(wallet, tx), expected.map((call) => ({ ...call, value: BigInt(call.value) })))
    const { hash } = await send(wallet, transfer, { client })
    assert.deepEqual(sent, wire(expected))
    assert.equal(hash, hashOf(expected.length), 'the last hash is reported')
  })

  test(`at once, from an allowance of ${allowance}`, async () => {
    for (const atomic of ['supported', 'ready']) {
      const { wallet, sent } = walletOf({ allowance, atomic })
      const { hash } = await send(wallet, transfer, { client })
      const alone = expected.length === 1 // a batch of one would only ask for an upgrade of the account
      assert.deepEqual(sent, alone ? wire(expected) : [{ ...tx.calls, calls: wire(expected) }])
      assert.equal(hash, hashOf(alone ? 1 : 42))
    }
  })
}

const { refused, cases } = JSON.parse(readFileSync(new URL('batches.json', fixtures)))

for (const code of refused.inTurn) {
  test(`in turn, where the wallet refuses the batch with ${code}`, async () => {
    const { wallet, sent } = walletOf({ atomic: 'ready', refused: code })
    const { hash } = await send(wallet, transfer, { client })
    assert.deepEqual(sent, wire([approve, open]))
    assert.equal(hash, hashOf(2))
  })
}

for (const code of refused.fails) {
  test(`nothing is sent, where the wallet refuses the batch with ${code}`, async () => {
    const { wallet, sent } = walletOf({ atomic: 'ready', refused: code })
    await assert.rejects(send(wallet, transfer, { client }), (error) => !(error instanceof SendError || error instanceof OutcomeUnknownError))
    assert.deepEqual(sent, [])
  })
}

for (const { name, outcome, ...batch } of cases) {
  test(`a batch: ${name}`, async () => {
    const { wallet, sent } = walletOf({ atomic: 'supported', batch })
    const sending = send(wallet, transfer, { client, timeout: 100 })
    if (outcome === 'sent') assert.equal((await sending).hash, hashOf(42))
    else if (outcome === 'reverted') await assert.rejects(sending, (error) => error instanceof SendError && error.reason === 'REVERTED')
    else await assert.rejects(sending, (error) => error instanceof OutcomeUnknownError && error.batch === '0x01')
    assert.equal(sent.length, 1)
  })
}

const past = new Date(Date.now() - 1000).toISOString()
const refusals = {
  'a tx that is null': [{ ...transfer, status: 'cancelled', tx: null }, {}, 'NO_TX'],
  'a deadline that has passed': [{ ...transfer, deadline: past }, {}, 'EXPIRED'],
  'a quote that has expired': [{ ...transfer, quote: { expiresAt: past } }, {}, 'EXPIRED'],
  'another chain': [transfer, { chainId: '0x1' }, 'OTHER_CHAIN'],
  'another account': [transfer, { accounts: [token] }, 'OTHER_ACCOUNT'],
  'a wallet without an account': [transfer, { accounts: [] }, 'OTHER_ACCOUNT'],
}
for (const [name, [record, setup, reason]] of Object.entries(refusals)) {
  test(`refused: ${name}`, async () => {
    const { wallet, sent } = walletOf(setup)
    await assert.rejects(send(wallet, record, { client }), (error) => error instanceof SendError && error.reason === reason)
    assert.deepEqual(sent, [])
  })
}

test('nothing follows a call that is reverted', async () => {
  const { wallet, sent } = walletOf({ status: '0x0' })
  await assert.rejects(send(wallet, transfer, { client }), { name: 'SendError', reason: 'REVERTED' })
  assert.deepEqual(sent, wire([approve]))
})

test('a hash that cannot be reported is not lost', async () => {
  const cause = new Error('offline')
  const offline = { transfers: { report: async () => { throw cause } } }
  await assert.rejects(send(walletOf().wallet, transfer, { client: offline }), (error) => error instanceof ReportError && error.hash === hashOf(2) && error.cause === cause)
})

test('a report is repeated where the service says when', async () => {
  const hashes = []
  const busy = { report: async (_, hash) => {
    if (hashes.push(hash) < 3) throw new ApiError(429, 'busy', { code: 'RATE_LIMITED', retryAfter: 1 })
    return { status: 'submitted' }
  } }
  assert.equal((await send(walletOf().wallet, transfer, { client: { transfers: busy } })).status, 'submitted')
  assert.deepEqual(hashes, [hashOf(2), hashOf(2), hashOf(2)])
})
