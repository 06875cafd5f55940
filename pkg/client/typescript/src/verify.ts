import type { WebhookEvent } from './records.js'

/** A request to a webhook that nobody with the secret has signed, or too long ago. Answer it with 401. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
}

/** The headers of a request, as fetch or Node have them. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>

const tolerance = 5 * 60 // seconds

/**
 * Verifies a request to a webhook by Standard Webhooks 1.0, and returns its event. Give it the bytes as they arrived, before anything parses
 * them. `secrets` are one, or several of which one must have signed. Fails with a WebhookVerificationError, also where the request is more than
 * 5 minutes old or ahead of `now`, in milliseconds since the Unix epoch, and with a TypeError where a secret is none.
 */
export async function verifyWebhook(
  body: string | Uint8Array, headers: WebhookHeaders, secrets: string | readonly string[], now: number = Date.now(),
): Promise<WebhookEvent> {
  const keys = await keysOf(typeof secrets === 'string' ? [secrets] : secrets)
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => header(headers, name))
  if (!id || !timestamp || !signatures) throw new WebhookVerificationError('a header webhook-id, webhook-timestamp or webhook-signature is missing')
  if (!/^\d+$/.test(timestamp)) throw new WebhookVerificationError('webhook-timestamp is no number of seconds')
  if (Math.abs(Math.floor(now / 1000) - Number(timestamp)) > tolerance) {
    throw new WebhookVerificationError('webhook-timestamp is more than 5 minutes off; check the clock of this machine')
  }
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes)
  for (const signature of signatures.split(' ')) {
    const mac = signature.startsWith('v1,') ? base64(signature.slice('v1,'.length)) : undefined
    if (!mac) continue
    for (const key of keys) {
      if (await crypto.subtle.verify('HMAC', key, mac, signed)) return { ...JSON.parse(new TextDecoder().decode(bytes)) as WebhookEvent, id }
    }
  }
  throw new WebhookVerificationError('no signature is by one of the secrets')
}

async function keysOf(secrets: readonly string[]): Promise<CryptoKey[]> {
  if (secrets.length === 0) throw new TypeError('give the secret of the webhook')
  return Promise.all(secrets.map((secret) => {
    const bytes = base64(secret.replace(/^whsec_/, ''))
    if (!bytes?.length) throw new TypeError('a secret of a webhook is whsec_ and base64')
    return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
  }))
}

function header(headers: WebhookHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined
  const value = headers[name] ?? Object.entries(headers).find(([other]) => other.toLowerCase() === name)?.[1]
  return typeof value === 'string' ? value : undefined // two of them are none
}

function base64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(head.length + tail.length)
  all.set(head)
  all.set(tail, head.length)
  return all
}
