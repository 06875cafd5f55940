// An OpenID Connect provider at ISSUER, an http:// origin of this machine, with one client. Anybody can sign in under any
// name and has the verified address <name>@example.com; a name that begins with "unsure" has one that is not verified.
import { generateKeyPairSync } from 'node:crypto'
import { Provider } from 'oidc-provider'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, REDIRECT_URI } = process.env
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

const provider = new Provider(ISSUER, {
  clients: [{ client_id: CLIENT_ID, client_secret: CLIENT_SECRET, redirect_uris: [REDIRECT_URI] }],
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
  claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
  pkce: { required: () => true },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: `${id} of the provider`, email: `${id}@example.com`, email_verified: !id.startsWith('unsure') }),
  }),
})

const { hostname, port } = new URL(ISSUER)
provider.listen(Number(port), hostname)
