// The published client of better-auth and its passkey plugin, against this service, step by step as it was recorded against its own server:
// RECORDED is that file. AGE_URL makes the confirmations of a person's sessions old.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createAuthClient } from 'better-auth/client'
import { passkeyClient } from '@better-auth/passkey/client'
import { behaviour, passkeys } from './authenticator.mjs'
import { answered, keepingCookies, refused, service, signUp } from './calls.mjs'

const recorded = JSON.parse(readFileSync(process.env.RECORDED)).steps

// What differs from better-auth's own server, by path: the members that an answer has more or less, and values that are others.
const differences = {
  '/passkey/generate-register-options': {
    values: {
      'authenticatorSelection.residentKey': 'required', // a passkey signs in without a name
      'authenticatorSelection.userVerification': 'required', // better-auth prefers it, and does not look
      'authenticatorSelection.requireResidentKey': true,
    },
  },
  '/passkey/generate-authenticate-options': { values: { userVerification: 'required' } },
  '/passkey/verify-authentication': { more: ['session.activeOrganizationId', 'user.image'], less: ['user.twoFactorEnabled'] }, // no one-time codes
}

// The values that are the same in every run.
const constants = /^(rp\.name|pubKeyCredParams|timeout|attestation|authenticatorSelection|extensions|hints|userVerification|deviceType|backedUp|transports|aaguid|status|code|name|passkey\.(name|deviceType|backedUp|transports|aaguid))/

// exchanges are those of the present step: {method, path, status, answer}.
let exchanges = []

function browser() {
  const fetching = keepingCookies()
  return createAuthClient({
    baseURL: service + '/auth', plugins: [passkeyClient()],
    fetchOptions: {
      customFetchImpl: async (url, init) => {
        const response = await fetching(url, init)
        const { pathname, search } = new URL(url)
        exchanges.push({ method: init?.method ?? 'GET', path: pathname.replace('/auth', '') + search, status: response.status, answer: await response.clone().text() })
        return response
      },
    },
  })
}

// members are the paths of what an answer has, each with its value. A list is as its first element.
function members(value, at = '') {
  if (Array.isArray(value) && typeof value[0] === 'object') return members(value[0], at + '[]')
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return { [at]: value }
  return Object.assign({}, ...Object.entries(value).map(([name, member]) => members(member, at ? `${at}.${name}` : name)))
}

// step does what was recorded under a name, and holds every exchange to it.
async function step(name, call) {
  exchanges = []
  const { data, error } = await call()
  const { http, result } = recorded[name]
  assert.deepEqual(exchanges.map(({ method, path, status }) => [method, path, status]), http.map(({ method, path, status }) => [method, path, status]), name)
  assert.equal(data === null, result.data === null, name)
  if (error) assert.deepEqual([error.code, error.status], [result.error.code, result.error.status], name)
  http.forEach((was, n) => sameAnswer(`${name}: ${was.path}`, was, exchanges[n]))
  console.log(name)
  return data
}

function sameAnswer(what, was, is) {
  const { more = [], less = [], values = {} } = differences[was.path.replace(/\?.*/, '')] ?? {}
  const [want, got] = [members(JSON.parse(was.answer)), members(JSON.parse(is.answer))]
  if (was.status !== 200) delete got.requestId // ours alone, in every error
  const expected = Object.keys(want).filter((name) => !less.includes(name)).concat(was.status === 200 ? more : [])
  assert.deepEqual(Object.keys(got).sort(), expected.sort(), what)
  for (const [name, value] of Object.entries(got)) {
    const of = name.replace(/^\[\]\./, '')
    if (of in values) assert.deepEqual(value, values[of], `${what} ${name}`)
    else if (constants.test(of)) assert.deepEqual(value, want[name], `${what} ${name}`)
    else if (value !== null && !more.includes(name)) assert.equal(typeof value, typeof want[name], `${what} ${name}`)
  }
}

const here = browser()
const person = await signUp(here)

await step('addPasskey', () => here.passkey.addPasskey({ name: 'laptop' }))
await step('addPasskey again', () => here.passkey.addPasskey({ name: 'laptop' }))
const [{ id }] = await step('listUserPasskeys', () => here.passkey.listUserPasskeys())
await step('updatePasskey', () => here.passkey.updatePasskey({ id, name: 'desk' }))

const there = browser()
const { session, user } = await step('signIn.passkey', () => there.signIn.passkey())
assert.deepEqual([user.id, session.userId], [person.user.id, person.user.id])
behaviour.verifies = false
await step('signIn.passkey, user not verified', () => browser().signIn.passkey())
behaviour.forges = true
await refused(browser().signIn.passkey(), 401, 'AUTHENTICATION_FAILED')
Object.assign(behaviour, { verifies: true, forges: false, origin: 'https://evil.example' })
await refused(browser().signIn.passkey(), 401, 'AUTHENTICATION_FAILED')
behaviour.origin = process.env.PUBLIC_URL
await step('signIn.passkey to go on', () => browser().signIn.passkey())
await step('deletePasskey of another', () => here.passkey.deletePasskey({ id: 'nobody' }))

// Signed in as the same person it confirms the session that there is.
const age = async () => assert.ok((await fetch(process.env.AGE_URL + '?' + new URLSearchParams({ email: person.email }))).ok)
await age()
await refused(here.passkey.addPasskey({ name: 'phone' }), 403, 'SESSION_NOT_FRESH')
await refused(here.passkey.deletePasskey({ id }), 403, 'SESSION_NOT_FRESH')
const before = (await answered(here.getSession())).session.id
assert.equal((await answered(here.signIn.passkey())).session.id, before)

const verify = (client, response) => client.$fetch('/passkey/verify-registration', { method: 'POST', body: { response } })
await refused(verify(here, {}), 400, 'CHALLENGE_NOT_FOUND')
await answered(here.$fetch('/passkey/generate-register-options'))
await refused(verify(here, {}), 400, 'FAILED_TO_VERIFY_REGISTRATION')
await answered(there.$fetch('/passkey/generate-authenticate-options'))
await refused(there.$fetch('/passkey/verify-authentication', { method: 'POST', body: { response: {} } }), 401, 'AUTHENTICATION_FAILED')
await refused(there.$fetch('/passkey/verify-authentication', { method: 'POST', body: { response: {} } }), 400, 'CHALLENGE_NOT_FOUND')
await refused(there.$fetch('/two-factor/enable', { method: 'POST', body: {} }), 404, 'NOT_FOUND')
console.log('refusals')

await step('deletePasskey', () => here.passkey.deletePasskey({ id }))
await step('signIn.passkey, unknown', () => browser().signIn.passkey())
assert.equal(passkeys.length, 1)
