// browser is better-auth's published client in a browser of its own: it keeps the cookies that it is given.
// BASE_URL is the service.
import { createAuthClient } from 'better-auth/client'
import { siweClient } from 'better-auth/client/plugins'
import { apiKeyClient } from '@better-auth/api-key/client'
import assert from 'node:assert/strict'

export const service = process.env.BASE_URL

export function browser() {
  const cookies = new Map()
  const keepingCookies = async (url, init) => {
    const headers = new Headers(init?.headers)
    if (cookies.size > 0) headers.set('cookie', [...cookies].map(([name, value]) => `${name}=${value}`).join('; '))
    const response = await fetch(url, { ...init, headers })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value, attributes] = line.match(/^([^=]+)=([^;]*)(.*)$/)
      assert.match(attributes, /; HttpOnly/)
      if (/; Max-Age=(0|-\d+)(;|$)/.test(attributes)) cookies.delete(name)
      else cookies.set(name, value)
    }
    return response
  }
  return createAuthClient({
    baseURL: service + '/auth',
    plugins: [apiKeyClient(), siweClient()],
    fetchOptions: { customFetchImpl: keepingCookies },
  })
}

// rotate is a call that the client's plugin does not know.
export const rotate = (client, body) => client.$fetch('/api-key/rotate', { method: 'POST', body })

// answered is what the client was given, which must not be an error.
export async function answered(call) {
  const { data, error } = await call
  assert.equal(error, null, JSON.stringify(error))
  return data
}

// refused is the error that the client was given.
export async function refused(call, status, code) {
  const { data, error } = await call
  assert.equal(data, null, JSON.stringify(data))
  assert.deepEqual([error.status, error.code], [status, code], JSON.stringify(error))
  assert.ok(error.message.length > 0)
  return error
}

let people = 0

// newcomer is a browser in which somebody new has signed up.
export async function newcomer() {
  const person = { name: 'Somebody', email: `node-${process.pid}-${Date.now()}-${++people}@example.com`, password: 'correct horse battery' }
  const client = browser()
  const { user } = await answered(client.signUp.email(person))
  return { client, user, ...person }
}

// status is how the service takes an API key.
export async function status(key) {
  const response = await fetch(service + '/v2/chains', { headers: { 'x-api-key': key } })
  await response.arrayBuffer()
  return response.status
}

// becomes waits for the second that a change may take to reach the gateways; a busy machine gets more.
export async function becomes(key, wanted) {
  let last
  for (const deadline = Date.now() + 15_000; Date.now() < deadline; await new Promise((done) => setTimeout(done, 50))) {
    if ((last = await status(key)) === wanted) return
  }
  assert.fail(`the key is still answered with ${last}, not ${wanted}`)
}
