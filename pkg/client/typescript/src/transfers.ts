import { dataOf, idempotencyKey, segment, type Api, type CreateOptions } from './api.js'
import type { Clock } from './clock.js'
import type {
  ClientToken, CreateTransfer, Preflight, Refund, Relay, SimulatedStatus, Transfer, TransferEvents, TransferQuery, TransferSummary, UpdateTransfer,
} from './records.js'
import type { CallOptions } from './transport.js'
import type { FeedReader } from './feed.js'
import { waitFor, type WaitOptions } from './wait.js'

/** A page of a list. */
export interface TransferPage {
  transfers: TransferSummary[]
  /** Give it as `cursor` for the next page; undefined on the last. An empty page of a filtered list may have one. */
  next: string | undefined
}

/** CallOptions of `transfers.createClientToken`. */
export interface ClientTokenOptions extends CallOptions {
  /** For how many seconds the token is valid, at most a day, which is also the default. */
  expiresIn?: number | undefined
}

/** Intents: transfers, swaps and bridges. An intent is named by its id or its order id. */
export interface Transfers {
  /** Makes an intent. It is tried again with the same Idempotency-Key, so that a lost answer does not make a second one. */
  create(request: CreateTransfer, options?: CreateOptions): Promise<Transfer>
  get(id: string, options?: CallOptions): Promise<Transfer>
  /** What has happened to an intent, oldest first, with the ids and bodies that the feed has. */
  events(id: string, options?: CallOptions): Promise<TransferEvents>
  /** One page, newest first. */
  list(query?: TransferQuery, options?: CallOptions): Promise<TransferPage>
  /** Every intent that matches, newest first, page after page. */
  all(query?: TransferQuery, options?: CallOptions): AsyncGenerator<TransferSummary, void, undefined>
  /** Changes the reference and the labels of an intent in any status; null removes one. It is not tried again. */
  update(id: string, request: UpdateTransfer, options?: CallOptions): Promise<Transfer>
  /** Gives up an intent that was not sent. It is not tried again. */
  cancel(id: string, options?: CallOptions): Promise<Transfer>
  /**
   * Takes an intent of the test environment to a status without a transaction, through each status on the way. The intent is never sent then. It is
   * not tried again.
   */
  simulate(id: string, status: SimulatedStatus, options?: CallOptions): Promise<Transfer>
  /** Tells the service the hash of a transaction that was sent for the intent. It is not tried again. */
  report(id: string, hash: string, options?: CallOptions): Promise<Transfer>
  /** Gives the signature of an intent that was made with `signing`, as `sign` of `@transfer-intents/client/viem` returns it. It is not tried again. */
  submitSignature(id: string, signature: string, options?: CallOptions): Promise<Transfer>
  /** The transaction of a signed intent, which any account can send. Send it with `relay` of `@transfer-intents/client/viem`. */
  relay(id: string, options?: CallOptions): Promise<Relay>
  /**
   * Makes a token with which a browser or an app reads, checks and reports this intent without the key. Nothing is stored, so that each call makes
   * another. It is not tried again.
   */
  createClientToken(id: string, options?: ClientTokenOptions): Promise<ClientToken>
  /** What the intent's transaction would do now. */
  preflight(id: string, options?: CallOptions): Promise<Preflight>
  /** The transaction that returns the money of an order that nobody filled. Send it with `sendTx` of `@transfer-intents/client/viem`. */
  refund(id: string, options?: CallOptions): Promise<Refund>
  /**
   * Waits until an intent has ended or has the wanted status, and returns it. All waits of a client follow the feed of events together. A failure
   * that may pass does not end it, and a 429 delays it by Retry-After; it fails after its timeout, two hours by default. An order that nobody
   * fills does not end: it is `confirmed` and `refundable`.
   */
  waitFor(id: string, options?: WaitOptions): Promise<Transfer>
}

export function transfersOf(api: Api, feed: FeedReader, clock: Clock): Transfers {
  const at = (id: string, options: CallOptions | undefined) => ({ params: { path: { id: segment(id) } }, ...api.with(options) })
  const get: Transfers['get'] = (id, options) => dataOf(api.http.GET('/v2/transfers/{id}', at(id, options)))
  const list: Transfers['list'] = async ({ labels, ...rest } = {}, options) => {
    const query = { ...rest, ...Object.fromEntries(Object.entries(labels ?? {}).map(([key, value]) => [`label.${key}`, value])) }
    const { data, response } = await api.http.GET('/v2/transfers', { params: { query }, ...api.with(options) })
    return { transfers: (data ?? []) as TransferSummary[], next: nextCursor(response.headers.get('link')) }
  }
  return {
    get,
    list,
    all: async function* (query = {}, options) {
      for (let cursor = query.cursor; ;) {
        const page = await list(cursor === undefined ? query : { ...query, cursor }, options)
        yield* page.transfers
        if (page.next === undefined) return
        cursor = page.next
      }
    },
    create: async (body, options) =>
      dataOf(api.http.POST('/v2/transfers', { params: { header: idempotencyKey(options?.idempotencyKey) }, body, ...api.with(options) })),
    update: async (id, body, options) => dataOf(api.http.PATCH('/v2/transfers/{id}', { body, ...at(id, options) })),
    cancel: async (id, options) => dataOf(api.http.POST('/v2/transfers/{id}/cancel', at(id, options))),
    simulate: async (id, status, options) => dataOf(api.http.POST('/v2/transfers/{id}/simulate', { body: { status }, ...at(id, options) })),
    report: async (id, hash, options) => dataOf(api.http.POST('/v2/transfers/{id}/transaction', { body: { hash }, ...at(id, options) })),
    submitSignature: async (id, signature, options) =>
      dataOf(api.http.POST('/v2/transfers/{id}/signature', { body: { signature }, ...at(id, options) })),
    relay: async (id, options) => dataOf(api.http.GET('/v2/transfers/{id}/relay', at(id, options))),
    events: (id, options) => dataOf(api.http.GET('/v2/transfers/{id}/events', at(id, options))) as Promise<TransferEvents>,
    preflight: async (id, options) => dataOf(api.http.GET('/v2/transfers/{id}/preflight', at(id, options))),
    createClientToken: async (id, { expiresIn, ...options } = {}) =>
      dataOf(api.http.POST('/v2/transfers/{id}/client-token', { body: expiresIn === undefined ? {} : { expiresIn }, ...at(id, options) })),
    refund: async (id, options) => dataOf(api.http.GET('/v2/transfers/{id}/refund', at(id, options))),
    waitFor: (id, options) => waitFor(get, feed, clock, id, options),
  }
}

// nextCursor takes only the cursor of the Link to the next page, so that no answer sends the key elsewhere.
function nextCursor(link: string | null): string | undefined {
  const target = link?.split(',').find((one) => /;\s*rel="?next"?\s*(;|$)/.test(one))?.match(/<([^>]*)>/)?.[1]
  return target === undefined ? undefined : new URL(target, 'http://list.invalid').searchParams.get('cursor') ?? undefined
}
