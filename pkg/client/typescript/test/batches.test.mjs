import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../dist/index.js'
import { answer, clientOf, clockAt, serve } from './server.mjs'

/** A service that keeps what was made by each Idempotency-Key. A batch with the reference "refused" is rejected because of it. */
async function start(t) {
  const state = { max: 100, made: new Map(), keys: [] }
  const { url, requests } = await serve(t, (response, _, { headers, body }) => {
    const refuse = (code, details) => answer(response, { code, message: 'No.', details }, 422)
    const key = headers['idempotency-key']
    const references = JSON.parse(body).transfers.map(({ reference }) => reference)
    const index = references.indexOf('refused')
    if (references.length > state.max) return refuse('BATCH_TOO_LARGE', { max: state.max })
    if (state.made.has(key) && state.made.get(key).join() !== references.join()) return refuse('IDEMPOTENCY_KEY_REUSED')
    if (index >= 0) return refuse('BATCH_REJECTED', { failures: [{ index, code: 'UNKNOWN_TOKEN', message: 'Which?' }] })
    state.made.set(key, references)
    state.keys.push(key)
    answer(response, { id: key, count: references.length }, 201)
  })
  return { state, requests, client: clientOf(url, clockAt(0)) }
}

const items = (count, more = '') => Array.from({ length: count }, (_, n) => ({ reference: n + more }))

// The cuts of the client in Go: a list is cut in its order, at 100 items, 64 KiB and the account's limit, and each part has its key.
for (const [name, count, max, more, expected] of [
  ['one', 1, 100, '', { pay: 1 }],
  ['a full one', 100, 100, '', { pay: 100 }],
  ['one more', 101, 100, '', { 'pay-1': 100, 'pay-2': 1 }],
  ["the account's limit", 80, 50, '', { pay: 50, 'pay-2': 30 }],
  ['both', 120, 50, '', { 'pay-1': 50, 'pay-2': 50, 'pay-3': 20 }],
  ['long items', 100, 100, '給'.repeat(256), { pay: 83, 'pay-2': 17 }],
]) {
  test(`batches.create: ${name}`, async (t) => {
    const { state, client, requests } = await start(t)
    state.max = max
    const list = items(count, more)
    const made = await client.batches.create(list, { idempotencyKey: 'pay' })
    assert.deepEqual(Object.fromEntries(made.map(({ id, count }) => [id, count])), expected)
    assert.deepEqual([...state.made.values()].flat(), list.map(({ reference }) => reference))
    for (const { body } of requests) assert.ok(Buffer.byteLength(body) <= 64 * 1024)
  })
}

test('batches.create makes a key of its own for each list', async (t) => {
  const { state, client } = await start(t)
  for (const _ of [1, 2]) await client.batches.create(items(1))
  assert.equal(state.made.size, 2)
})

test('batches.create: a part that fails leaves those before it, names its items by their place in the list, and a repeat makes what is missing', async (t) => {
  const { state, client } = await start(t)
  const list = items(250)
  list[107].reference = 'refused'
  await assert.rejects(client.batches.create(list, { idempotencyKey: 'pay' }), (error) => {
    assert.ok(error instanceof ApiError)
    assert.deepEqual([error.code, error.message, error.made], ['BATCH_REJECTED', 'items 100 to 199 of the list: No.', [{ id: 'pay-1', count: 100 }]])
    assert.deepEqual(error.batchFailures, [{ index: 107, code: 'UNKNOWN_TOKEN', message: 'Which?' }])
    return true
  })
  list[107].reference = 'mended'
  assert.equal((await client.batches.create(list, { idempotencyKey: 'pay' })).length, 3)
  assert.deepEqual(state.keys, ['pay-1', 'pay-1', 'pay-2', 'pay-3'])
})

test("batches.create: however the account's limit changes, a repeat makes no item twice", async (t) => {
  const { state, client } = await start(t)
  for (const count of [80, 101, 230]) {
    for (const [before, after] of [[100, 50], [50, 100], [30, 50], [100, 100]]) {
      for (const end of [0, 55, 155]) {
        state.made.clear()
        const list = items(count)
        if (end < count) list[end].reference = 'refused'
        state.max = before
        await client.batches.create(list, { idempotencyKey: 'pay' }).catch((error) => error)
        if (end < count) list[end].reference = `${end}`
        state.max = after
        const error = await client.batches.create(list, { idempotencyKey: 'pay' }).then(() => undefined, (error) => error)
        const all = [...state.made.values()].flat()
        assert.equal(new Set(all).size, all.length, `${[count, before, after, end]}: ${error}`)
        if (error) assert.equal(error.code, 'IDEMPOTENCY_KEY_REUSED')
        else assert.equal(all.length, count)
      }
    }
  }
})

test('batches.create: the timeout is for all parts', async (t) => {
  const clock = clockAt(0)
  const { url, requests } = await serve(t, (response, n) => {
    void clock.sleep(600)
    answer(response, { id: `${n}`, count: 1 }, 201)
  })
  await assert.rejects(clientOf(url, clock).batches.create(items(300), { idempotencyKey: 'pay', timeout: 1000 }), (error) => error.status === 0 && error.made.length === 2)
  assert.equal(requests.length, 2)
})

test('what the other operations of batches send', async (t) => {
  const { url, requests } = await serve(t, (response) => answer(response, {}))
  const { batches } = clientOf(url, clockAt(0))
  await batches.get('b')
  await batches.calls('b')
  await batches.calls('b', { 'max-calls': 20 })
  await batches.report('b', '0x1')
  await batches.report('b', '0x1', ['one', 'two'])
  assert.deepEqual(requests.map(({ method, url, body }) => [method, url, body]), [
    ['GET', '/v2/batches/b', ''],
    ['GET', '/v2/batches/b/calls', ''],
    ['GET', '/v2/batches/b/calls?max-calls=20', ''],
    ['POST', '/v2/batches/b/transaction', '{"hash":"0x1"}'],
    ['POST', '/v2/batches/b/transaction', '{"hash":"0x1","transfers":["one","two"]}'],
  ])
})
