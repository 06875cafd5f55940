import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ApiError, createClient } from '../dist/index.js'
import { answer, clientOf, clockAt, fixtures, serve } from './server.mjs'

const { now, cases } = JSON.parse(readFileSync(new URL('retries.json', fixtures)))
const id = '019b7a3e-0000-7000-8000-000000000001'

const calls = {
  get: (client, options) => client.transfers.get(id, options),
  create: (client, options) => client.transfers.create({ quoteId: id }, options),
  delete: (client, options) => client.webhooks.delete(id, options),
  report: (client, options) => client.transfers.report(id, `0x${'1'.repeat(64)}`, options),
  update: (client, options) => client.webhooks.update(id, { enabled: true }, options),
}

function give(response, { status, headers = {}, body, text, close, cut, hang }, other) {
  if (hang) return
  if (close) return response.destroy()
  const fields = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.replace('{other}', other)]))
  const errorBody = { code: status === 429 ? 'RATE_LIMITED' : 'UNAVAILABLE', message: 'not now' }
  const payload = text ?? JSON.stringify(body ?? (status < 300 ? { id, status: 'created' } : errorBody))
  if (!cut) return response.writeHead(status, fields).end(payload)
  response.writeHead(status, { ...fields, 'content-length': payload.length })
  response.write(payload.slice(0, 5), () => response.destroy())
}

for (const { name, request, responses, deadline, tries, waits, error } of cases) {
  test(name, async (t) => {
    const other = await serve(t, (response) => answer(response, []))
    const { url, requests } = await serve(t, (response, n) => give(response, responses[n], other.url))
    const clock = clockAt(Date.parse(now), { stands: true })
    const call = calls[request](clientOf(url, clock), { timeout: deadline })
    if (!error) await call
    else {
      await assert.rejects(call, (thrown) => {
        assert.ok(thrown instanceof ApiError, thrown.stack)
        assert.deepEqual({ status: thrown.status, code: thrown.code }, { code: '', ...error })
        return true
      })
    }
    assert.equal(requests.length, tries)
    assert.deepEqual(clock.waits, waits)
    assert.equal(other.requests.length, 0)
    assert.ok(requests.every(({ headers }) => headers['x-api-key'] === 'sk_test_1'))
    assert.equal(new Set(requests.map(({ headers, body }) => headers['idempotency-key'] + body)).size, 1, 'the tries are one request')
    assert.equal('idempotency-key' in requests[0].headers, request === 'create')
  })
}

test('the jitter is full', async (t) => {
  const { url } = await serve(t, (response, n) => answer(response, n ? {} : { code: 'UNAVAILABLE', message: '' }, n ? 200 : 503))
  const clock = { ...clockAt(0), random: () => 0.25 }
  await clientOf(url, clock).transfers.get(id)
  assert.deepEqual(clock.waits, [125])
})

test('an error has what the response tells', async (t) => {
  const details = { issues: [{ path: '/source/amount', message: 'is required' }, { path: '/deadline', message: 'is past' }] }
  const headers = { 'x-request-id': 'req-1', 'retry-after': '90' }
  const sent = { code: 'INVALID_REQUEST', message: 'bad', details, keyEnv: 'test' }
  const { url } = await serve(t, (response) => answer(response, sent, 400, headers))
  const { name, status, code, message, requestId, retryAfter, details: told, body } = await clientOf(url, clockAt(0)).transfers.get(id).catch((error) => error)
  assert.deepEqual([name, status, code, message, requestId, retryAfter, told],
    ['ApiError', 400, 'INVALID_REQUEST', 'bad First: /source/amount is required. (request req-1)', 'req-1', 90_000, details])
  assert.deepEqual(body, sent)
})

test('the request id is that of the body where the header is hidden', async (t) => {
  const { url } = await serve(t, (response) => answer(response, { code: 'INVALID_REQUEST', message: 'bad', requestId: 'req-1' }, 400))
  const { requestId, message } = await clientOf(url, clockAt(0)).transfers.get(id).catch((error) => error)
  assert.deepEqual([requestId, message], ['req-1', 'bad (request req-1)'])
})

test('a connection error names baseUrl', async (t) => {
  const { url } = await serve(t, () => {})
  const closed = url.replace(/\d+$/, '1') // a port on which nothing listens
  await assert.rejects(clientOf(closed, clockAt(0)).transfers.get(id), (error) => error.status === 0 && error.temporary && error.message.includes(`${closed}/v2/transfers/`))
})

test('an abort ends a request and a pause with its reason', async (t) => {
  const controller = new AbortController()
  const reason = new Error('enough')
  const { url } = await serve(t, () => controller.abort(reason))
  const client = createClient({ baseUrl: url, key: 'k' })
  await assert.rejects(client.transfers.get(id, { signal: controller.signal }), reason)

  const pausing = new AbortController()
  const clock = { ...clockAt(0), sleep: async (_, signal) => { pausing.abort(reason); signal.throwIfAborted() } }
  const busy = await serve(t, (response) => answer(response, {}, 503))
  await assert.rejects(clientOf(busy.url, clock).transfers.get(id, { signal: pausing.signal }), reason)
  assert.equal(busy.requests.length, 1)
})

test('a redirect that a browser hides is an error', async () => {
  const fetch = async () => Object.defineProperty(Response.error(), 'type', { value: 'opaqueredirect' })
  const client = createClient({ baseUrl: 'https://intents.example.com', key: 'k', fetch })
  await assert.rejects(client.transfers.get(id), (error) => error instanceof ApiError && error.status === 0 && /redirected/.test(error.message))
})

test('an id cannot lead elsewhere', async () => {
  const client = createClient({ baseUrl: 'https://intents.example.com', key: 'k', fetch: () => assert.fail('sent') })
  for (const bad of ['', '.', '..']) await assert.rejects(async () => client.webhooks.delete(bad), TypeError)
})
