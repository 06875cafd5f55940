// browser is better-auth's published client in a browser of its own: it keeps the cookies that it is given.
// BASE_URL is the service.
import { createAuthClient } from 'better-auth/client'
import { genericOAuthClient, organizationClient, siweClient } from 'better-auth/client/plugins'
import { createAccessControl } from 'better-auth/plugins/access'
import { apiKeyClient } from '@better-auth/api-key/client'
import assert from 'node:assert/strict'

export const service = process.env.BASE_URL

// ac and roles are what the service's roles may do with an account, as the client is to know it.
const ac = createAccessControl({ organization: ['delete'], member: ['update', 'delete'], invitation: ['create', 'cancel'], key: ['change'] })
const roles = {
  owner: ac.newRole({ organization: ['delete'], member: ['update', 'delete'], invitation: ['create', 'cancel'], key: ['change'] }),
  developer: ac.newRole({ key: ['change'] }),
  viewer: ac.newRole({}),
}

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
    plugins: [apiKeyClient(), genericOAuthClient(), siweClient(), organizationClient({ ac, roles })],
    fetchOptions: { customFetchImpl: keepingCookies },
  })
}

// linkWallet is a call that the client's plugin does not know.
export const linkWallet = (client, body) => client.$fetch('/siwe/link', { method: 'POST', body })

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

// newcomer is a browser in which somebody new has signed up and opened the link that is mailed.
export async function newcomer() {
  const person = { name: 'Somebody', email: `node-${process.pid}-${Date.now()}-${++people}@example.com`, password: 'correct horse battery' }
  const client = browser()
  const signedUp = await answered(client.signUp.email(person))
  assert.deepEqual([signedUp.token, signedUp.user.emailVerified], [null, false])
  const { origin, pathname, searchParams } = await mailedLink(person.email)
  assert.equal(origin + pathname, process.env.PUBLIC_URL + '/console/verify-email')
  assert.deepEqual(await answered(client.verifyEmail({ query: { token: searchParams.get('token') } })), { status: true, user: null })
  const { user } = await answered(client.signIn.email({ email: person.email, password: person.password }))
  assert.deepEqual([user.id, user.emailVerified], [signedUp.user.id, true])
  return { client, user, ...person }
}

// status is how the service takes an API key.
export async function status(key) {
  const response = await fetch(service + '/v2/chains', { headers: { 'x-api-key': key } })
  await response.arrayBuffer()
  return response.status
}

// mailedLink waits for the mail to an address, whose link it is. MAILBOX_URL answers 404 until there is one.
export async function mailedLink(email) {
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; await new Promise((done) => setTimeout(done, 50))) {
    const response = await fetch(process.env.MAILBOX_URL + '?' + new URLSearchParams({ to: email }))
    const link = await response.text()
    if (response.ok) return new URL(link)
  }
  assert.fail(`no mail has come for ${email}`)
}

// becomes waits for the second that a change may take to reach the gateways; a busy machine gets more.
export async function becomes(key, wanted) {
  let last
  for (const deadline = Date.now() + 15_000; Date.now() < deadline; await new Promise((done) => setTimeout(done, 50))) {
    if ((last = await status(key)) === wanted) return
  }
  assert.fail(`the key is still answered with ${last}, not ${wanted}`)
}
