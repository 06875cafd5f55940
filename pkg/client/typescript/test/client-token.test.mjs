import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError, createClient } from '../dist/index.js'
import { answer, clientOf, clockAt, serve, tokenClientOf } from './server.mjs'

const id = '019b7a3e-0000-7000-8000-000000000001'
const hash = `0x${'1'.repeat(64)}`

test('a server makes a token', async (t) => {
  const made = { token: 'ct_1', expiresAt: '2026-11-30T00:00:00.000Z' }
  const { url, requests } = await serve(t, (response) => answer(response, made, 201))
  assert.deepEqual(await clientOf(url, clockAt(0)).transfers.createClientToken(id, { expiresIn: 60 }), made)
  assert.deepEqual(await clientOf(url, clockAt(0)).transfers.createClientToken(id), made)
  assert.deepEqual(requests.map(({ method, url, body }) => `${method} ${url} ${body}`),
    [`POST /v2/transfers/${id}/client-token {"expiresIn":60}`, `POST /v2/transfers/${id}/client-token {}`])
})

test('a client with a token has the operations of its intent, and sends no key', async (t) => {
  const { url, requests } = await serve(t, (response) => answer(response, { id, ended: true }))
  const client = createClient({ baseUrl: url, clientToken: 'ct_1' })
  await client.transfers.get(id)
  await client.transfers.preflight(id)
  await client.transfers.report(id, hash)
  await client.transfers.waitFor(id)
  const path = `/v2/transfers/${id}`
  assert.deepEqual(requests.map(({ method, url }) => `${method} ${url}`), [`GET ${path}`, `GET ${path}/preflight`, `POST ${path}/transaction`, `GET ${path}`])
  for (const { headers } of requests) {
    assert.equal(headers.authorization, 'Bearer ct_1')
    assert.ok(!('x-api-key' in headers))
  }
  assert.deepEqual([Object.keys(client), Object.keys(client.transfers)], [['transfers'], ['get', 'preflight', 'report', 'waitFor']])
})

test('a function is asked for the token before each request', async (t) => {
  const { url, requests } = await serve(t, (response, n) => n ? answer(response, { id }) : answer(response, { code: 'INVALID_CLIENT_TOKEN', message: 'expired' }, 401))
  let asked = 0
  const { transfers } = createClient({ baseUrl: url, clientToken: async () => `ct_${++asked}` })
  await assert.rejects(transfers.get(id), (error) => error instanceof ApiError && error.code === 'INVALID_CLIENT_TOKEN' && !error.temporary)
  await transfers.get(id)
  assert.deepEqual(requests.map(({ headers }) => headers.authorization), ['Bearer ct_1', 'Bearer ct_2'])
})

test('a wait with a token looks by itself, and never asks for the feed', async (t) => {
  const { url, requests } = await serve(t, (response, n) => answer(response, { id, status: 'submitted', ended: n === 3 }))
  const clock = clockAt(0)
  await tokenClientOf(url, clock).transfers.waitFor(id)
  assert.deepEqual(requests.map(({ url }) => url), Array(4).fill(`/v2/transfers/${id}`))
  assert.deepEqual(clock.waits, [1000, 1500, 2250])
})
