import type { Clock } from './clock.js'
import { ApiError } from './error.js'
import { errorOf, parsed } from './response.js'

/** What ends a call before its answer. */
export interface CallOptions {
  /** Aborts the call, which fails with the signal's reason. */
  signal?: AbortSignal | undefined
  /** Milliseconds for the whole call, all tries and the time between them included. None by default. */
  timeout?: number | undefined
}

/** What requests are sent with. */
export interface Transport {
  fetch: typeof globalThis.fetch
  clock: Clock
  origin: string
}

const maxTries = 3
const tryTimeout = 30_000
const maxWait = 60_000
const firstBackoff = 500

/**
 * Sends a request, up to three times where that is safe: a GET, a DELETE, and a POST with an Idempotency-Key. Fails with an ApiError where the
 * response is not a success. A try may take 30 seconds beyond `wait`, the milliseconds for which the service is asked to hold the request.
 */
export async function send(transport: Transport, request: Request, { signal, timeout }: CallOptions, wait: number): Promise<Response> {
  const { clock, origin } = transport
  if (new URL(request.url).origin !== origin) throw new TypeError(`the request leaves ${origin}`)
  const body = request.body === null ? undefined : await request.text()
  const safe = ['GET', 'DELETE'].includes(request.method) || (request.method === 'POST' && request.headers.has('idempotency-key'))
  const deadline = clock.now() + (timeout ?? Infinity)
  for (let tries = 1; ; tries++) {
    const left = deadline - clock.now()
    const limit = Math.min(left, tryTimeout + wait)
    const { answer, failure } = await attempt(transport, request, body, limit, signal)
    if (answer) return answer
    if (!safe || !failure.temporary || tries === maxTries || (limit === left && isTimeout(failure))) throw failure
    const pause = Math.min(failure.retryAfter ?? clock.random() * firstBackoff * 2 ** (tries - 1), maxWait)
    if (clock.now() + pause >= deadline) throw failure
    await clock.sleep(pause, signal)
  }
}

const isTimeout = ({ cause }: ApiError) => cause instanceof DOMException && cause.name === 'TimeoutError'

type Outcome = { answer: Response; failure?: never } | { answer?: never; failure: ApiError }

// attempt makes one try. It fails only where the caller aborts.
async function attempt(
  { fetch, clock }: Transport, request: Request, body: string | undefined, limit: number, signal: AbortSignal | undefined,
): Promise<Outcome> {
  signal?.throwIfAborted()
  const { method, headers } = request
  const { origin, pathname } = new URL(request.url)
  const what = `${method} ${origin}${pathname}`
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(new DOMException(`no answer in ${limit} ms`, 'TimeoutError')), limit)
  const abort = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    const response = await fetch(request.url, {
      method, headers, redirect: 'manual', credentials: 'omit', signal: controller.signal, ...(body !== undefined && { body }),
    })
    // A browser tells no more of a redirect.
    if (response.type === 'opaqueredirect') return { failure: new ApiError(0, `${what} is redirected, which is not followed; check baseUrl`) }
    const text = await response.text().catch((cause: unknown) => {
      if (response.ok) throw cause
      return '' // the status and Retry-After of an error are known all the same
    })
    return response.ok ? parsed(what, response, text) : { failure: errorOf(what, response, text, clock.now()) }
  } catch (cause) {
    if (signal?.aborted) throw signal.reason
    return { failure: new ApiError(0, `${what} has no answer: ${reasonOf(cause)}; check baseUrl and the connection`, { cause, temporary: true }) }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

// reasonOf is why a connection failed: fetch of Node gives that as the cause of its own error alone.
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  return cause instanceof Error && cause.message !== '' ? `${error.message}: ${cause.message}` : error.message
}
