// How the service's refusals reach somebody who uses the published clients of better-auth.
import assert from 'node:assert/strict'
import { answered, becomes, browser, mailedLink, newcomer, refused, rotate } from './browser.mjs'

async function ofStrangers() {
  const stranger = browser()
  for (const call of [
    stranger.apiKey.create({ name: 'x' }), stranger.apiKey.list(), stranger.apiKey.get({ query: { id: 'x' } }),
    stranger.apiKey.update({ keyId: 'x', name: 'y' }), stranger.apiKey.delete({ keyId: 'x' }), rotate(stranger, { keyId: 'x' }),
    stranger.listSessions(), stranger.revokeSession({ token: 'x' }), stranger.revokeOtherSessions(), stranger.revokeSessions(),
    stranger.changePassword({ currentPassword: 'correct horse battery', newPassword: 'staple correct horse' }),
    stranger.changeEmail({ newEmail: 'x@example.com' }), stranger.deleteUser({ password: 'correct horse battery' }),
  ]) await refused(call, 401, 'UNAUTHORIZED')
}

async function ofSignUpAndIn() {
  const somebody = await newcomer()
  const { email, password, name } = somebody
  const stranger = browser()
  const again = await answered(stranger.signUp.email({ name, email, password }))
  assert.deepEqual([again.token, again.user.email, again.user.emailVerified], [null, email, false], 'who guesses addresses learns nothing')
  assert.equal((await mailedLink(email)).pathname, '/console/sign-in')
  assert.equal(await answered(stranger.getSession()), null)
  await answered(stranger.signUp.email({ name, email: 'new-' + email, password }))
  await refused(stranger.signIn.email({ email: 'new-' + email, password }), 401, 'INVALID_EMAIL_OR_PASSWORD')
  await refused(stranger.verifyEmail({ query: { token: 'x' } }), 401, 'INVALID_TOKEN')
  await refused(somebody.client.sendVerificationEmail({ email }), 400, 'EMAIL_ALREADY_VERIFIED')
  await refused(somebody.client.sendVerificationEmail({ email: 'new-' + email }), 400, 'EMAIL_MISMATCH')
  await refused(somebody.client.changeEmail({ newEmail: email }), 400, 'INVALID_REQUEST')
  await refused(somebody.client.changeEmail({ newEmail: 'x-' + email, callbackURL: 'https://elsewhere.example' }), 400, 'INVALID_REQUEST')
  await refused(stranger.signUp.email({ name, email: 'short-' + email, password: 'short' }), 400, 'INVALID_REQUEST')
  const wrong = await refused(stranger.signIn.email({ email, password: 'wrong horse battery' }), 401, 'INVALID_EMAIL_OR_PASSWORD')
  const nobody = await refused(stranger.signIn.email({ email: 'nobody-' + email, password }), 401, 'INVALID_EMAIL_OR_PASSWORD')
  assert.deepEqual(nobody, wrong, 'who guesses addresses learns nothing')
  const change = (currentPassword, newPassword) => somebody.client.changePassword({ currentPassword, newPassword })
  await refused(change('wrong horse battery', 'staple correct horse'), 400, 'INVALID_PASSWORD')
  await refused(change(password, 'short'), 400, 'INVALID_REQUEST')
  await refused(somebody.client.deleteUser({ password: 'wrong horse battery' }), 400, 'INVALID_PASSWORD')
}

async function ofGuesses() {
  const { email, password } = await newcomer()
  const guesser = browser()
  let waits
  const guess = (password) => guesser.signIn.email({ email, password }, { onError: ({ response }) => { waits = response.headers.get('retry-after') } })
  let guesses = 0
  for (let error; error?.status !== 429; guesses++) {
    assert.ok(guesses < 15, 'nobody stops the guessing');
    ({ error } = await guess('wrong horse battery'))
  }
  const error = await refused(guess(password), 429, 'RATE_LIMITED')
  assert.match(waits, /^[1-9]\d*$/)
  assert.ok(error.details.tryAgainIn > 0 && Math.ceil(error.details.tryAgainIn / 1000) <= Number(waits) + 1, `${error.details.tryAgainIn} ms, ${waits} s`)
}

async function ofOthersKeys() {
  const [owner, other] = [await newcomer(), await newcomer()]
  const { id } = await answered(owner.client.apiKey.create({ name: 'mine' }))
  for (const keyId of [id, crypto.randomUUID(), 'x']) for (const call of [
    other.client.apiKey.get({ query: { id: keyId } }), other.client.apiKey.update({ keyId, enabled: false }),
    other.client.apiKey.delete({ keyId }), rotate(other.client, { keyId }),
  ]) await refused(call, 404, 'NOT_FOUND')
  assert.equal((await answered(owner.client.apiKey.get({ query: { id } }))).enabled, true)
}

async function ofBadRequests() {
  const { client, user } = await newcomer()
  const { id: keyId } = await answered(client.apiKey.create({ name: 'good' }))
  for (const call of [
    client.apiKey.update({ keyId }),
    client.apiKey.update({ keyId, name: 'x', userId: user.id }),
    client.apiKey.update({ keyId, expiresIn: 0 }),
    client.apiKey.create({ name: 'x', userId: user.id }),
    client.apiKey.create({ name: 'x', prefix: 'pk_' }),
    client.apiKey.create({}), client.apiKey.create({ name: ' ' }), client.apiKey.create({ name: 'x'.repeat(65) }),
    client.apiKey.create({ name: 'x', environment: 'production' }), client.apiKey.create({ name: 'x', expiresIn: -1 }),
    rotate(client, { keyId, gracePeriod: -1 }), rotate(client, { keyId, gracePeriod: 86401 }), rotate(client, { keyId, name: 'x' }),
  ]) {
    const error = await refused(call, 400, 'INVALID_REQUEST')
    assert.ok(error.details.issues[0].message.length > 0)
  }
  const name = '<script>alert(1)</script>'
  assert.equal((await answered(client.apiKey.update({ keyId, name }))).name, name)
  await answered(client.apiKey.create({ name: '🔑'.repeat(64) }))
}

async function ofTooManyKeys() {
  const { client } = await newcomer()
  let last
  for (let n = 0; n < 100; n++) last = await answered(client.apiKey.create({ name: `key ${n}` }))
  await refused(client.apiKey.create({ name: 'one more' }), 409, 'TOO_MANY_API_KEYS')
  await refused(rotate(client, { keyId: last.id, gracePeriod: 60 }), 409, 'TOO_MANY_API_KEYS')
  const { key } = await answered(rotate(client, { keyId: last.id }))
  await becomes(key, 200)
}

for (const step of [ofStrangers, ofSignUpAndIn, ofGuesses, ofOthersKeys, ofBadRequests, ofTooManyKeys]) {
  await step()
  console.log(step.name)
}
