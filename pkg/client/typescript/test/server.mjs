// A service on the loopback that answers what it is told to, and a clock that stands still and notes what it is asked to wait.
import { createServer } from 'node:http'
import { clientWith, tokenClientWith } from '../dist/client.js'

export const fixtures = new URL('../../testdata/', import.meta.url)

/** A clock that waits for nothing: its sleeps are noted, and pass only on it. */
export function clockAt(now, { stands = false } = {}) {
  const waits = []
  return {
    waits,
    now: () => now,
    random: () => 1,
    sleep: async (milliseconds, signal) => {
      signal?.throwIfAborted()
      waits.push(milliseconds)
      if (!stands) now += milliseconds
    },
  }
}

/** Starts a server; handle gets each request with its body read. Ended with the test. */
export async function serve(t, handle) {
  const requests = []
  const server = createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    requests.push({ method: request.method, url: request.url, headers: request.headers, body: Buffer.concat(chunks).toString() })
    handle(response, requests.length - 1, requests.at(-1))
  })
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${server.address().port}`, requests }
}

/** Answers with JSON. */
export function answer(response, body, status = 200, headers = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

export const clientOf = (url, clock) => clientWith({ baseUrl: url, key: 'sk_test_1' }, clock)

/** A client with a client token in place of a key. */
export const tokenClientOf = (url, clock, clientToken = 'ct_1') => tokenClientWith({ baseUrl: url, clientToken }, clock)
