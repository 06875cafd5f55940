// A platform authenticator and the browser before it, as far as @simplewebauthn/browser asks them: navigator.credentials with Ed25519 keys.
// PUBLIC_URL is the page's origin.
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

const origin = process.env.PUBLIC_URL
const userPresent = 0x01, userVerified = 0x04, attested = 0x40

// The passkeys of the authenticator, {id, handle, key, count}.
export const passkeys = []

// behaviour is what a test changes: verifies is false for a person who is not verified, forges for an authenticator that answers all the same,
// and origin for a page of another site.
export const behaviour = { verifies: true, forges: false, origin }

const base64url = (bytes) => Buffer.from(bytes).toString('base64url')
const sha256 = (bytes) => createHash('sha256').update(bytes).digest()

// head is the head of authenticator data with further flags. It counts a use.
function head(passkey, rpId, flags) {
  const count = Buffer.alloc(4)
  count.writeUInt32BE(++passkey.count)
  return Buffer.concat([sha256(rpId), Buffer.of(flags | userPresent | (behaviour.verifies ? userVerified : 0)), count])
}

const clientData = (type, challenge) => Buffer.from(JSON.stringify({ type, challenge: base64url(challenge), origin: behaviour.origin, crossOrigin: false }))

const text = (s) => Buffer.concat([Buffer.of(0x60 + s.length), Buffer.from(s)])

// coseKey is an Ed25519 key in COSE (RFC 9053): {1: 1, 3: -8, -1: 6, -2: x}.
const coseKey = (x) => Buffer.concat([Buffer.of(0xa4, 0x01, 0x01, 0x03, 0x27, 0x20, 0x06, 0x21, 0x58, 0x20), x])

// attestation is the object {fmt: none, attStmt: {}, authData} in CBOR.
const attestation = (data) => Buffer.concat([
  Buffer.of(0xa3), text('fmt'), text('none'), text('attStmt'), Buffer.of(0xa0), text('authData'), Buffer.of(0x58, data.length), data,
])

const fails = (name) => Object.assign(new Error('The operation either timed out or was not allowed.'), { name })

function verifies() {
  if (!behaviour.verifies && !behaviour.forges) throw fails('NotAllowedError')
}

async function create({ publicKey }) {
  verifies()
  if (publicKey.excludeCredentials.some(({ id }) => passkeys.some((known) => base64url(known.id) === base64url(id)))) throw fails('InvalidStateError')
  const { publicKey: open, privateKey } = generateKeyPairSync('ed25519')
  const passkey = { id: randomBytes(32), handle: Buffer.from(publicKey.user.id), key: privateKey, count: 0 }
  const x = open.export({ format: 'der', type: 'spki' }).subarray(-32)
  const model = Buffer.from('01020304050607080102030405060708', 'hex')
  const data = Buffer.concat([head(passkey, publicKey.rp.id, attested), model, Buffer.of(0, passkey.id.length), passkey.id, coseKey(x)])
  passkeys.push(passkey)
  return credential(passkey, {
    clientDataJSON: clientData('webauthn.create', publicKey.challenge), attestationObject: attestation(data),
    getTransports: () => ['internal'], getPublicKeyAlgorithm: () => -8, getAuthenticatorData: () => data,
    getPublicKey: () => open.export({ format: 'der', type: 'spki' }),
  })
}

async function get({ publicKey }) {
  verifies()
  const allowed = publicKey.allowCredentials?.map(({ id }) => base64url(id))
  const passkey = passkeys.findLast((known) => !allowed || allowed.includes(base64url(known.id)))
  if (!passkey) throw fails('NotAllowedError')
  const data = head(passkey, publicKey.rpId, 0), client = clientData('webauthn.get', publicKey.challenge)
  return credential(passkey, {
    clientDataJSON: client, authenticatorData: data, userHandle: passkey.handle,
    signature: sign(null, Buffer.concat([data, sha256(client)]), passkey.key),
  })
}

const credential = ({ id }, response) => ({
  id: base64url(id), rawId: id, response, type: 'public-key', authenticatorAttachment: 'platform', getClientExtensionResults: () => ({}),
})

class PublicKeyCredential {}
Object.assign(globalThis, { PublicKeyCredential, location: new URL(origin), window: globalThis })
Object.defineProperty(globalThis, 'navigator', { value: { credentials: { create, get } }, configurable: true })
