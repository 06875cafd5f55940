import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, clientOf, clockAt, serve } from './server.mjs'

// As TestTransfers_WaitTogether of the Go client: the service limits each intent's reads at first, and tells of their ends in the feed alone. No
// time passes in which the waits could look by themselves.
test('sixteen waits are delayed by the rate limit and follow the feed together', async (t) => {
  const ids = Array.from({ length: 16 }, (_, n) => `i${n}`)
  const reads = Object.fromEntries(ids.map((id) => [id, 0]))
  let followers = 0, atOnce = 0, told = false
  let allRead
  const every = new Promise((resolve) => { allRead = resolve })
  const follow = async (response, after) => {
    atOnce = Math.max(atOnce, ++followers)
    response.on('close', () => followers--)
    if (after === 'now') return answer(response, { events: [], next: 'c1' })
    if (after !== 'c1') return
    await every
    told = true
    answer(response, { events: ids.map((id) => ({ id: `evt_${id}`, type: 'transfer.failed', data: { id, orderId: `0x${id}` } })), next: 'c2' })
  }
  const { url } = await serve(t, (response, _, request) => {
    const { pathname, searchParams } = new URL(request.url, 'http://test.invalid')
    if (pathname === '/v2/events') return void follow(response, searchParams.get('after'))
    const id = pathname.split('/').pop()
    if (++reads[id] <= 4) return answer(response, { code: 'RATE_LIMITED', message: 'later' }, 429, { 'retry-after': '7' }) // more than a request has tries
    answer(response, { id, status: 'submitted', ended: told })
    if (ids.every((one) => reads[one] > 4)) allRead()
  })
  const clock = {
    ...clockAt(0),
    sleep: (milliseconds, signal) => milliseconds === 7000 ? Promise.resolve() : new Promise((_, reject) => {
      if (signal?.aborted) reject(signal.reason)
      signal?.addEventListener('abort', () => reject(signal.reason))
    }),
  }
  const client = clientOf(url, clock)
  const ended = await Promise.all(ids.map((id) => client.transfers.waitFor(id)))
  assert.ok(ended.every((transfer) => transfer.ended))
  assert.equal(atOnce, 1, 'the feed is read with one request at a time')
  assert.ok(Object.values(reads).every((count) => count <= 8), JSON.stringify(reads))
})
