import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { answer, clientOf, clockAt, fixtures, serve } from './server.mjs'

// hasNoFeed refuses the feed, so that each wait looks by itself.
function hasNoFeed(response, { url }) {
  if (url.startsWith('/v2/events')) answer(response, { code: 'NOT_FOUND', message: 'no feed' }, 404)
  return url.startsWith('/v2/events')
}

const id = '019b7a3e-0000-7000-8000-000000000001'

for (const { name, until, reads, shown, ends, error } of JSON.parse(readFileSync(new URL('waits.json', fixtures))).cases) {
  test(`waitFor: ${name}`, async (t) => {
    let n = 0
    const { url } = await serve(t, (response, _, request) => {
      if (hasNoFeed(response, request)) return
      const read = reads[Math.min(n++, reads.length - 1)]
      if (Array.isArray(read)) answer(response, { id, status: read[0], ended: read[1] })
      else answer(response, { code: read.code ?? 'UNAVAILABLE', message: 'no' }, read.status)
    })
    const seen = []
    const waiting = clientOf(url, clockAt(0)).transfers.waitFor(id, { until, onChange: ({ status }) => void seen.push(status) })
    if (error) await assert.rejects(waiting, { code: error })
    else assert.equal((await waiting).status, ends)
    assert.deepEqual(seen, shown)
  })
}

test('waitFor reads ever more rarely without the feed, and often again after a change', async (t) => {
  let n = -1
  const { url } = await serve(t, (response, _, request) => {
    if (hasNoFeed(response, request)) return
    n++
    answer(response, { id, status: n < 8 ? 'created' : 'submitted', final: n === 10 })
  })
  const clock = clockAt(0)
  await clientOf(url, clock).transfers.waitFor(id)
  assert.deepEqual(clock.waits, [1000, 1500, 2250, 3375, 5062.5, 7593.75, 10000, 10000, 1000, 1500])
})

test('waitFor ends with its timeout, and with an abort', async (t) => {
  const { url } = await serve(t, (response, _, request) => hasNoFeed(response, request) || answer(response, { id, status: 'created', ended: false }))
  await assert.rejects(clientOf(url, clockAt(0)).transfers.waitFor(id, { timeout: 4000 }), { name: 'ApiError', status: 0, message: /still created/ })
  await assert.rejects(clientOf(url, clockAt(0)).transfers.waitFor(id), { name: 'ApiError', message: /still created .* 7200000 ms/ })
  const controller = new AbortController()
  const waiting = clientOf(url, clockAt(0)).transfers.waitFor(id, { signal: controller.signal, onChange: () => controller.abort(new Error('enough')) })
  await assert.rejects(waiting, { message: 'enough' })
})

test('all follows the links to the next page, on its own origin, also from an empty one', async (t) => {
  const { url, requests } = await serve(t, (response, n) => {
    answer(response, n === 1 ? [] : [{ id: n }], 200, n < 2 ? { link: `<http://elsewhere.invalid/v2/transfers?limit=1&cursor=c${n}>; rel="next"` } : {})
  })
  const seen = []
  for await (const { id } of clientOf(url, clockAt(0)).transfers.all({ status: ['created', 'cancelled'], limit: 1 })) seen.push(id)
  assert.deepEqual(seen, [0, 2])
  assert.deepEqual(requests.map((request) => request.url), ['', '&cursor=c0', '&cursor=c1'].map((more) => `/v2/transfers?status=created,cancelled&limit=1${more}`))
})

test('follow reads on from each cursor, and fails where one has expired', async (t) => {
  const pages = [{ events: [{ id: 'a' }, { id: 'b' }], next: 'one' }, { events: [], next: 'two' }, { events: [{ id: 'c' }], next: 'three' }]
  const { url, requests } = await serve(t, (response, n) => {
    if (pages[n]) answer(response, pages[n])
    else answer(response, { code: 'CURSOR_EXPIRED', message: 'gone' }, 410)
  })
  const [seen, cursors] = [[], []]
  const follow = async () => {
    const events = clientOf(url, clockAt(0)).events.follow({ after: 'start', types: ['transfer.created', 'transfer.filled'], onCursor: (c) => void cursors.push([c, seen.length]) })
    for await (const { id } of events) seen.push(id)
  }
  await assert.rejects(follow, { name: 'ApiError', status: 410, code: 'CURSOR_EXPIRED' })
  assert.deepEqual(seen, ['a', 'b', 'c'])
  assert.deepEqual(cursors, [['one', 2], ['two', 2], ['three', 3]])
  assert.deepEqual(requests.map((request) => new URL(request.url, url).searchParams.get('after')), ['start', 'one', 'two', 'three'])
  assert.ok(requests.every((request) => request.url.includes('wait=25') && request.url.includes('types=transfer.created%2Ctransfer.filled')))
})

test('an answer without a body', async (t) => {
  const { url, requests } = await serve(t, (response) => response.writeHead(202).end())
  const { webhooks } = clientOf(url, clockAt(0))
  assert.equal(await webhooks.retry(id, 'evt_1'), undefined)
  assert.equal(await webhooks.replay(id, 'cursor'), undefined)
  assert.equal(await webhooks.delete(id), undefined)
  assert.equal(requests[1].body, '{"after":"cursor"}')
})

test('labels of a list are parameters of their own', async (t) => {
  const asked = []
  const { url } = await serve(t, (response, _, request) => {
    asked.push(new URL(request.url, 'http://a').search)
    answer(response, [])
  })
  await clientOf(url, clockAt(0)).transfers.list({ limit: 5, labels: { order: '4 2', 'a.b': 'ü' } })
  assert.deepEqual(asked.map((query) => Object.fromEntries(new URLSearchParams(query))), [{ limit: '5', 'label.order': '4 2', 'label.a.b': 'ü' }])
})
