// The published clients of better-auth and its API key plugin do what a developer does before the first call. Ends with an
// error where an answer is not what the client's documentation promises.
import assert from 'node:assert/strict'
import { answered, becomes, browser, mailedLink, newcomer, refused, rotate, status } from './browser.mjs'

const near = (time, milliseconds) => Math.abs(new Date(time) - Date.now() - milliseconds) < 60_000

// holds compares those fields of got that want has.
const holds = (got, want) => assert.deepEqual(Object.fromEntries(Object.keys(want).map((name) => [name, got[name]])), want)

async function signsUpInAndOut() {
  const client = browser()
  assert.equal(await answered(client.getSession()), null)
  const somebody = await newcomer()
  assert.equal(somebody.user.email, somebody.email)
  assert.equal(somebody.user.name, somebody.name)
  const first = await answered(somebody.client.getSession())
  assert.equal(first.user.id, somebody.user.id)
  assert.equal(first.session.userId, somebody.user.id)
  assert.equal(await answered(client.getSession()), null)

  assert.deepEqual(await answered(somebody.client.signOut()), { success: true })
  assert.equal(await answered(somebody.client.getSession()), null)
  const { user, token } = await answered(client.signIn.email({ email: somebody.email, password: somebody.password }))
  assert.equal(user.id, somebody.user.id)
  assert.equal(token, null, 'the token is for the cookie alone')
  const second = await answered(client.getSession())
  assert.notEqual(second.session.id, first.session.id)
}

async function makesAndChangesKeys() {
  const { client } = await newcomer()
  assert.deepEqual((await answered(client.apiKey.list())).apiKeys, [])
  const test = await answered(client.apiKey.create({ name: '  first ' }))
  assert.match(test.key, /^sk_test_[A-Za-z0-9]{64}$/)
  const live = await answered(client.apiKey.create({ name: 'second', environment: 'live', expiresIn: 3600 }))
  assert.match(live.key, /^sk_live_[A-Za-z0-9]{64}$/)
  assert.ok(near(live.expiresAt, 3600_000))
  for (const [made, name, environment] of [[test, 'first', 'test'], [live, 'second', 'live']]) {
    holds(made, {
      name, environment, prefix: `sk_${environment}_`, start: made.key.slice(0, 12), enabled: true, lastUsedAt: null,
      rateLimitEnabled: true, rateLimitMax: 50, rateLimitTimeWindow: 60_000,
      scopes: ['intents:read', 'intents:write', 'webhooks'], networks: [],
      permissions: { intents: ['read', 'write'], webhooks: ['read', 'write'] },
    })
    assert.equal(await status(made.key), 200)
  }
  assert.equal(test.expiresAt, null)

  const { key: _, ...listed } = live
  const { apiKeys, total } = await answered(client.apiKey.list())
  assert.deepEqual([apiKeys.map((k) => k.id), total], [[live.id, test.id], 2])
  assert.deepEqual({ ...apiKeys[0], lastUsedAt: null }, listed)
  assert.deepEqual({ ...await answered(client.apiKey.get({ query: { id: live.id } })), lastUsedAt: null }, listed)
  await changes(client, test)

  assert.deepEqual(await answered(client.apiKey.delete({ keyId: live.id })), { success: true })
  await becomes(live.key, 403)
  await refused(client.apiKey.get({ query: { id: live.id } }), 404, 'NOT_FOUND')
  assert.deepEqual((await answered(client.apiKey.list())).apiKeys.map((k) => k.id), [test.id])
}

async function changes(client, { id, key }) {
  const renamed = await answered(client.apiKey.update({ keyId: id, name: ' renamed ' }))
  assert.deepEqual([renamed.id, renamed.name, renamed.enabled, renamed.key], [id, 'renamed', true, undefined])
  assert.equal((await answered(client.apiKey.update({ keyId: id, enabled: false }))).enabled, false)
  await becomes(key, 403)
  assert.equal((await answered(client.apiKey.update({ keyId: id, enabled: true }))).enabled, true)
  await becomes(key, 200)
  assert.ok(near((await answered(client.apiKey.update({ keyId: id, expiresIn: 86400 }))).expiresAt, 86400_000))
  assert.equal((await answered(client.apiKey.update({ keyId: id, expiresIn: null }))).expiresAt, null)
  assert.equal((await answered(client.apiKey.update({ keyId: id, expiresIn: 1 }))).name, 'renamed')
  await becomes(key, 403)
  await answered(client.apiKey.update({ keyId: id, expiresIn: 3600 }))
  await becomes(key, 200)
  const restricted = await answered(client.apiKey.update({ keyId: id, scopes: ['webhooks'], networks: ['192.0.2.7'] }))
  holds(restricted, { scopes: ['webhooks'], networks: ['192.0.2.7/32'], permissions: { webhooks: ['read', 'write'] } })
  await becomes(key, 403)
  await answered(client.apiKey.update({ keyId: id, networks: [] }))
  await becomes(key, 200)
}

async function rotatesKeys() {
  const { client } = await newcomer()
  const first = await answered(client.apiKey.create({ name: 'rotated', environment: 'live', expiresIn: 7200 }))
  const second = await answered(rotate(client, { keyId: first.id, gracePeriod: 60 }))
  assert.notEqual(second.id, first.id)
  assert.match(second.key, /^sk_live_[A-Za-z0-9]{64}$/)
  assert.deepEqual([second.name, second.environment, second.enabled, second.expiresAt], [first.name, 'live', true, first.expiresAt])
  assert.deepEqual([await status(first.key), await status(second.key)], [200, 200])
  assert.ok(near((await answered(client.apiKey.get({ query: { id: first.id } }))).expiresAt, 60_000))
  await refused(rotate(client, { keyId: first.id }), 409, 'KEY_ROTATED')

  const third = await answered(rotate(client, { keyId: second.id }))
  await becomes(second.key, 403)
  assert.equal(await status(third.key), 200)
  await refused(client.apiKey.get({ query: { id: second.id } }), 404, 'NOT_FOUND')
  assert.deepEqual((await answered(client.apiKey.list())).apiKeys.map((k) => k.id), [third.id, first.id])
}

async function endsSessions() {
  const { client: here, email, password } = await newcomer()
  const elsewhere = async () => {
    const client = browser()
    await answered(client.signIn.email({ email, password }))
    return client
  }
  const [there, everywhere] = [await elsewhere(), await elsewhere()]
  const sessions = await answered(here.listSessions())
  assert.equal(sessions.length, 3)
  const { session } = await answered(there.getSession())
  const listed = sessions.find((one) => one.id === session.id)
  assert.deepEqual(await answered(here.revokeSession({ token: listed.token })), { status: true })
  assert.equal(await answered(there.getSession()), null)

  assert.deepEqual(await answered(here.revokeOtherSessions()), { status: true })
  assert.equal(await answered(everywhere.getSession()), null)
  assert.equal((await answered(here.listSessions())).length, 1)

  assert.deepEqual(await answered(here.revokeSessions()), { status: true })
  assert.equal(await answered(here.getSession()), null)
}

async function changesPassword() {
  const { client: here, user, email, password } = await newcomer()
  const there = browser()
  await answered(there.signIn.email({ email, password }))
  const newPassword = 'staple correct horse'
  const changed = await answered(here.changePassword({ currentPassword: password, newPassword, revokeOtherSessions: true }))
  assert.deepEqual([changed.token, changed.user.id], [null, user.id])
  assert.equal((await answered(here.getSession())).user.id, user.id)
  assert.equal(await answered(there.getSession()), null)
  await refused(there.signIn.email({ email, password }), 401, 'INVALID_EMAIL_OR_PASSWORD')
  await answered(there.signIn.email({ email, password: newPassword }))
}

async function resetsPassword() {
  const { client: here, email, password } = await newcomer()
  const stranger = browser()
  const asked = await answered(stranger.requestPasswordReset({ email, redirectTo: process.env.PUBLIC_URL + '/reset' }))
  const nobody = await answered(stranger.requestPasswordReset({ email: 'nobody-' + email, redirectTo: '/reset' }))
  assert.equal(asked.status, true)
  assert.deepEqual(nobody, asked, 'who guesses addresses learns nothing')
  const link = await mailedLink(email)
  // Who asks does not choose where the link leads.
  assert.equal(link.origin + link.pathname, process.env.PUBLIC_URL + '/console/reset-password')
  const token = link.searchParams.get('token')
  const newPassword = 'staple correct horse'
  await refused(stranger.resetPassword({ newPassword, token: token.slice(1) }), 400, 'INVALID_TOKEN')
  await refused(stranger.resetPassword({ newPassword: 'short', token }), 400, 'INVALID_REQUEST')
  assert.deepEqual(await answered(stranger.resetPassword({ newPassword, token })), { status: true })
  await refused(stranger.resetPassword({ newPassword, token }), 400, 'INVALID_TOKEN')
  assert.equal(await answered(here.getSession()), null)
  await refused(stranger.signIn.email({ email, password }), 401, 'INVALID_EMAIL_OR_PASSWORD')
  await answered(stranger.signIn.email({ email, password: newPassword }))
}

async function changesAddress() {
  const { client, email, password } = await newcomer()
  const newEmail = 'new-' + email
  assert.deepEqual(await answered(client.changeEmail({ newEmail, callbackURL: '/app' })), { status: true })
  const token = async (address) => (await mailedLink(address)).searchParams.get('token')
  const [first, stranger] = [await token(email), browser()]
  await refused(stranger.verifyEmail({ query: { token: first } }), 401, 'UNAUTHORIZED')
  assert.deepEqual(await answered(client.verifyEmail({ query: { token: first } })), { status: true, user: null })
  const { user } = await answered(client.verifyEmail({ query: { token: await token(newEmail) } }))
  assert.deepEqual([user.email, user.emailVerified], [newEmail, true])
  await refused(stranger.signIn.email({ email, password }), 401, 'INVALID_EMAIL_OR_PASSWORD')
  await answered(stranger.signIn.email({ email: newEmail, password }))
}

async function leaves() {
  const { client, email, password } = await newcomer()
  const { key } = await answered(client.apiKey.create({ name: 'last' }))
  assert.equal(await status(key), 200)
  assert.equal((await answered(client.deleteUser({ password }))).success, true)
  await becomes(key, 403)
  assert.equal(await answered(client.getSession()), null)
  await refused(client.signIn.email({ email, password }), 401, 'INVALID_EMAIL_OR_PASSWORD')
}

for (const step of [signsUpInAndOut, makesAndChangesKeys, rotatesKeys, endsSessions, changesPassword, resetsPassword, changesAddress, leaves]) {
  await step()
  console.log(step.name)
}
