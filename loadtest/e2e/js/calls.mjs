// What the calls of any version of better-auth's published client have in common. BASE_URL is the service.
import assert from 'node:assert/strict'

export const service = process.env.BASE_URL

// keepingCookies is fetch in a browser of its own: it keeps the cookies that it is given.
export function keepingCookies() {
  const cookies = new Map()
  return async (url, init) => {
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
}

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

// signUp makes a person of a browser's client: somebody new has signed up and opened the link that is mailed.
export async function signUp(client) {
  const person = { name: 'Somebody', email: `node-${process.pid}-${Date.now()}-${++people}@example.com`, password: 'correct horse battery' }
  const signedUp = await answered(client.signUp.email(person))
  assert.deepEqual([signedUp.token, signedUp.user.emailVerified], [null, false])
  const { origin, pathname, searchParams } = await mailedLink(person.email)
  assert.equal(origin + pathname, process.env.PUBLIC_URL + '/console/verify-email')
  assert.deepEqual(await answered(client.verifyEmail({ query: { token: searchParams.get('token') } })), { status: true, user: null })
  const { user } = await answered(client.signIn.email({ email: person.email, password: person.password }))
  assert.deepEqual([user.id, user.emailVerified], [signedUp.user.id, true])
  return { client, user, ...person }
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
