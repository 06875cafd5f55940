// browser is better-auth's published client in a browser of its own: it keeps the cookies that it is given.
// BASE_URL is the service.
import { createAuthClient } from 'better-auth/client'
import { genericOAuthClient, organizationClient, siweClient } from 'better-auth/client/plugins'
import { createAccessControl } from 'better-auth/plugins/access'
import { apiKeyClient } from '@better-auth/api-key/client'
import assert from 'node:assert/strict'
import { keepingCookies, service, signUp } from './calls.mjs'

export { answered, mailedLink, refused, service } from './calls.mjs'

// ac and roles are what the service's roles may do with an account, as the client is to know it.
const ac = createAccessControl({ organization: ['delete'], member: ['update', 'delete'], invitation: ['create', 'cancel'], key: ['change'] })
const roles = {
  owner: ac.newRole({ organization: ['delete'], member: ['update', 'delete'], invitation: ['create', 'cancel'], key: ['change'] }),
  developer: ac.newRole({ key: ['change'] }),
  viewer: ac.newRole({}),
}

export function browser() {
  return createAuthClient({
    baseURL: service + '/auth',
    plugins: [apiKeyClient(), genericOAuthClient(), siweClient(), organizationClient({ ac, roles })],
    fetchOptions: { customFetchImpl: keepingCookies() },
  })
}

// linkWallet is a call that the client's plugin does not know.
export const linkWallet = (client, body) => client.$fetch('/siwe/link', { method: 'POST', body })

// rotate is a call that the client's plugin does not know.
export const rotate = (client, body) => client.$fetch('/api-key/rotate', { method: 'POST', body })

// newcomer is a browser in which somebody new has signed up.
export const newcomer = () => signUp(browser())

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
