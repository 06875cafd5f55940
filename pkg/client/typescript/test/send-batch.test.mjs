import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../dist/index.js'
import { BatchReportError, OutcomeUnknownError, ReportError, sendBatch, SendError } from '../dist/viem.js'
import { approval, from, hashOf, settler, token, walletOf } from './wallet.mjs'

const ids = (count) => Array.from({ length: count }, (_, n) => `t${n}`)
const pay = (n) => ({ to: token, value: '0x0', data: `0xa9059cbb${String(n).padStart(8, '0')}` })
const open = (n) => ({ to: settler, value: '0x0', data: `0x7515de50${String(n).padStart(8, '0')}` })

/**
 * A service with one batch: plain payments, and at the places of `opens` swaps, which need an approval. It hands out what is not reported, as the
 * service does: an approval of the sum in each request. `excluded` are the reasons by place, `refuses` the error of the nth report.
 */
function serviceOf(count, { opens = [], excluded = {}, chains = {}, refuses = () => undefined } = {}) {
  const all = ids(count)
  const reported = {}
  const asked = []
  const reports = []
  const isOpen = (id) => opens.includes(all.indexOf(id))
  const ownCall = (id) => (isOpen(id) ? open : pay)(all.indexOf(id))
  const report = async (hash, transfers) => {
    const error = refuses(reports.length)
    if (error) throw error
    reports.push([hash, transfers])
    for (const id of transfers) reported[id] = hash
    return { id: 'b', status: 'submitted' }
  }
  const client = {
    batches: {
      calls: async (id, { 'max-calls': most }) => {
        assert.equal(id, 'b')
        asked.push(most)
        const requests = []
        for (const [n, transfer] of all.entries()) {
          if (reported[transfer] || excluded[n]) continue
          const chainId = chains[n] ?? '0x7a69'
          let last = requests.at(-1)
          const needs = isOpen(transfer) && !(last?.transfers.some(isOpen)) ? 2 : 1
          if (!last || last.calls.chainId !== chainId || last.size + needs > most) requests.push(last = { transfers: [], size: 0, calls: { chainId } })
          last.size += isOpen(transfer) && !last.transfers.some(isOpen) ? 2 : 1
          last.transfers.push(transfer)
        }
        for (const request of requests) {
          const first = request.transfers.findIndex(isOpen)
          const calls = request.transfers.map(ownCall)
          if (first >= 0) calls.splice(first, 0, { ...approval(1000n * BigInt(request.transfers.filter(isOpen).length)), value: '0x0' })
          request.calls = { version: '2.0.0', chainId: request.calls.chainId, from, atomicRequired: false, calls }
          delete request.size
        }
        const left = all.flatMap((id, n) => reported[id] ? [{ id, reason: 'STATUS' }] : excluded[n] ? [{ id, reason: excluded[n] }] : [])
        return { requests, excluded: left }
      },
      report: (id, hash, transfers) => report(hash, transfers),
    },
    transfers: {
      get: async (id) => ({
        id, status: 'created', deadline: new Date(Date.now() + 3600_000).toISOString(), quote: null,
        tx: { chainId: 31337, from, ...ownCall(id), value: '0', allowances: [], calls: {} },
      }),
      report: (id, hash) => report(hash, [id]),
    },
  }
  return { client, asked, reports }
}

test('a batch in requests of ten calls, each reported with its intents', async () => {
  const { client, asked, reports } = serviceOf(25)
  const { wallet, sent } = walletOf()
  const expected = [[hashOf(42), ids(25).slice(0, 10)], [hashOf(84), ids(25).slice(10, 20)], [hashOf(126), ids(25).slice(20)]]
  assert.deepEqual(await sendBatch(wallet, { id: 'b' }, { client }), { sent: expected.map(([hash, transfers]) => ({ hash, transfers })), excluded: [] })
  assert.deepEqual(reports, expected)
  assert.deepEqual(asked, [10, 10, 10, 10])
  assert.deepEqual(sent[0], { version: '2.0.0', chainId: '0x7a69', from, atomicRequired: false, calls: ids(10).map((_, n) => pay(n)) })
})

test('as many calls as the caller says', async () => {
  const { client, asked } = serviceOf(25)
  const { wallet, sent } = walletOf()
  await sendBatch(wallet, { id: 'b' }, { client, maxCalls: 50 })
  assert.deepEqual([asked, sent.length], [[50, 50], 1])
})

test('fewer calls where the wallet takes fewer', async () => {
  const { client, asked, reports } = serviceOf(9)
  const { wallet, sent } = walletOf({ refused: ({ calls }) => calls.length > 3 ? 5740 : undefined })
  await sendBatch(wallet, { id: 'b' }, { client })
  assert.deepEqual(asked, [10, 4, 2, 2, 2, 2, 2, 2])
  assert.deepEqual(sent.map(({ calls }) => calls.length), [2, 2, 2, 2, 1])
  assert.deepEqual(reports.flatMap(([, transfers]) => transfers), ids(9))
})

for (const code of [-32601, -32004, 4200, 5700, 5710, 5740, 5750, 5760]) {
  test(`in turn, where the wallet refuses calls with ${code}`, async () => {
    const { client, reports } = serviceOf(3)
    let asked = 0
    const { wallet, sent } = walletOf({ refused: () => { asked++; return code } })
    await sendBatch(wallet, { id: 'b' }, { client })
    assert.deepEqual(sent, ids(3).map((_, n) => pay(n)))
    assert.deepEqual(reports, ids(3).map((id, n) => [hashOf(n + 1), [id]]))
    assert.equal(asked, code === 5740 ? 2 : 1, 'its owner is not asked for each')
  })
}

test('nothing is sent where the owner declines', async () => {
  const { client, reports } = serviceOf(3)
  const { wallet, sent } = walletOf({ refused: 4001 })
  await assert.rejects(sendBatch(wallet, { id: 'b' }, { client }), (error) => !(error instanceof SendError || error instanceof OutcomeUnknownError))
  assert.deepEqual([sent, reports], [[], []])
})

// What the wallet says of t0, t1 and t2, of which t1 and t2 need an approval before t1: pay t0, approve, open t1, open t2.
const outcomes = [
  { name: 'one transaction', status: 200, receipts: 1, reports: [[42, ['t0', 't1', 't2']]] },
  { name: 'a transaction a call', status: 200, receipts: 4, reports: [[39, ['t0']], [41, ['t1']], [42, ['t2']]] },
  { name: 'a transaction a call, some reverted', status: 600, receipts: 4, reverted: [2], reports: [[39, ['t0']], [42, ['t2']]], error: SendError },
  { name: 'a transaction a call, the approval reverted', status: 600, receipts: 4, reverted: [1, 2, 3], reports: [[39, ['t0']]], error: SendError },
  { name: 'none carried out, by the wallet', status: 400, reports: [], error: SendError },
  { name: 'none carried out, by the chain', status: 500, receipts: 1, reports: [], error: SendError },
  { name: 'receipts that name no call', status: 200, receipts: 2, reports: [], error: OutcomeUnknownError },
  { name: 'one transaction, reverted in part', status: 600, receipts: 1, reports: [], error: OutcomeUnknownError },
  { name: 'fewer transactions than calls, reverted in part', status: 600, receipts: 3, reverted: [2], reports: [], error: OutcomeUnknownError },
  { name: 'a success without receipts', status: 200, reports: [], error: OutcomeUnknownError },
  { name: 'never in a block', status: 100, reports: [], error: OutcomeUnknownError },
  { name: 'no answer for the calls', code: 5730, reports: [], error: OutcomeUnknownError },
]
for (const { name, reports: expected, error, ...batch } of outcomes) {
  test(`calls that the wallet has taken: ${name}`, async () => {
    const { client, reports } = serviceOf(3, { opens: [1, 2] })
    const { wallet, sent } = walletOf({ batch })
    const sending = sendBatch(wallet, { id: 'b' }, { client, timeout: 100 })
    if (!error) assert.deepEqual((await sending).sent, expected.map(([n, transfers]) => ({ hash: hashOf(n), transfers })))
    else await assert.rejects(sending, (thrown) => thrown instanceof error && (thrown.reason ?? 'REVERTED') === 'REVERTED' && (thrown.batch ?? '0x01') === '0x01')
    assert.deepEqual(reports, expected.map(([n, transfers]) => [hashOf(n), transfers]))
    assert.equal(sent.length, 1)
  })
}

test('what no calls pay for is returned, and what is paid is not', async () => {
  const { client } = serviceOf(4, { excluded: { 1: 'NATIVE', 2: 'EXPIRES_SOON', 3: 'STATUS' } })
  const { excluded } = await sendBatch(walletOf().wallet, { id: 'b' }, { client })
  assert.deepEqual(excluded, [{ id: 't1', reason: 'NATIVE' }, { id: 't2', reason: 'EXPIRES_SOON' }])
})

test('another chain ends it, and the rest goes on where the wallet has switched', async () => {
  const { client, reports } = serviceOf(3, { chains: { 2: '0x1' } })
  await assert.rejects(sendBatch(walletOf().wallet, { id: 'b' }, { client }), { name: 'SendError', reason: 'OTHER_CHAIN' })
  await sendBatch(walletOf({ chainId: '0x1' }).wallet, { id: 'b' }, { client })
  assert.deepEqual(reports.map(([, transfers]) => transfers), [['t0', 't1'], ['t2']])
})

test('another account sends nothing', async () => {
  const { wallet, sent } = walletOf({ accounts: [token] })
  await assert.rejects(sendBatch(wallet, { id: 'b' }, serviceOf(3)), { name: 'SendError', reason: 'OTHER_ACCOUNT' })
  assert.deepEqual(sent, [])
})

test('hashes that cannot be reported are not lost, nor those after them', async () => {
  const cause = new Error('offline')
  const { client, reports } = serviceOf(3, { refuses: (n) => n === 1 && !failed ? (failed = cause) : undefined })
  let failed
  const { wallet, sent } = walletOf({ batch: { status: 200, receipts: 3 } })
  await assert.rejects(sendBatch(wallet, { id: 'b' }, { client }), (error) => {
    assert.ok(error instanceof BatchReportError && error.cause === cause, error.stack)
    assert.deepEqual(error.transactions, [{ hash: hashOf(41), transfers: ['t1'] }])
    return true
  })
  assert.deepEqual(reports, [[hashOf(40), ['t0']], [hashOf(42), ['t2']]])
  assert.equal(sent.length, 1)
})

test('in turn, a hash that cannot be reported ends it', async () => {
  const { client } = serviceOf(3, { refuses: (n) => n === 1 ? new Error('offline') : undefined })
  const { wallet, sent } = walletOf({ refused: -32601 })
  await assert.rejects(sendBatch(wallet, { id: 'b' }, { client }), (error) => error instanceof ReportError && error.hash === hashOf(2))
  assert.equal(sent.length, 2)
})

test('a report is repeated where the service says when', async () => {
  let busy = 2
  const { client, reports } = serviceOf(1, { refuses: () => busy-- > 0 ? new ApiError(429, 'busy', { code: 'RATE_LIMITED', retryAfter: 1 }) : undefined })
  await sendBatch(walletOf().wallet, { id: 'b' }, { client })
  assert.deepEqual(reports, [[hashOf(42), ['t0']]])
})

test('calls that are handed out again are not sent again', async () => {
  const { client } = serviceOf(1)
  client.batches.report = async () => ({ id: 'b' }) // and forgets it
  const { wallet, sent } = walletOf()
  await assert.rejects(sendBatch(wallet, { id: 'b' }, { client }), { message: /t0 again/ })
  assert.equal(sent.length, 1)
})
