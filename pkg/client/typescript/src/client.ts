import createFetchClient, { type Client as FetchClient } from 'openapi-fetch'
import { batchesOf, type Batches } from './batches.js'
import { systemClock, type Clock } from './clock.js'
import { eventsOf, type Events } from './events.js'
import { FeedReader } from './feed.js'
import { referenceOf, type Chains, type Origins, type Quotes, type Tokens, type Usage } from './reference.js'
import type { paths } from './schema.js'
import { transfersOf, type Transfers } from './transfers.js'
import { send, type CallOptions, type Transport } from './transport.js'
import { webhooksOf, type Webhooks } from './webhooks.js'

/** What a client needs to know. */
export interface ClientOptions {
  /** Where the service is, for example `https://intents.example.com`. The key goes to this origin only. */
  baseUrl: string
  /** An API key, `sk_test_…` or `sk_live_…`. Keep it on your servers: who has it is you. */
  key: string
  /** In place of the global fetch. It must honor `redirect` and `signal`. */
  fetch?: typeof globalThis.fetch
}

/** What a client in a browser or an app needs to know, which has no key. */
export interface TokenClientOptions extends Omit<ClientOptions, 'key'> {
  /**
   * The token of one intent, of `transfers.createClientToken` on your server, or a function that is asked for it before each request. A token that is
   * no longer valid is answered with the ApiError `INVALID_CLIENT_TOKEN`: get another one from your server.
   */
  clientToken: string | (() => string | Promise<string>)
}

/** The operations that a client token allows, for its one intent. Each fails with an ApiError. */
export interface TokenClient {
  transfers: Pick<Transfers, 'get' | 'preflight' | 'report' | 'waitFor'>
}

/** The operations of the API. Each fails with an ApiError. */
export interface Client {
  transfers: Transfers
  batches: Batches
  quotes: Quotes
  tokens: Tokens
  chains: Chains
  usage: Usage
  events: Events
  webhooks: Webhooks
  origins: Origins
}

/** A client of the service at `baseUrl`. It holds no connection and need not be closed. With a client token it has the operations of its intent. */
export function createClient(options: ClientOptions): Client
export function createClient(options: TokenClientOptions): TokenClient
export function createClient(options: ClientOptions | TokenClientOptions): Client | TokenClient {
  return 'clientToken' in options ? tokenClientWith(options, systemClock) : clientWith(options, systemClock)
}

/** createClient with a clock of the tests. */
export function clientWith({ key, ...options }: ClientOptions, clock: Clock): Client {
  const api = apiOf(options, clock, () => ['x-api-key', key])
  const events = eventsOf(api)
  return {
    transfers: transfersOf(api, new FeedReader(events.list, clock), clock), batches: batchesOf(api, clock), ...referenceOf(api), events,
    webhooks: webhooksOf(api),
  }
}

/** createClient with a token, and a clock of the tests. A wait does not follow the feed, which tells of all intents of the account. */
export function tokenClientWith({ clientToken, ...options }: TokenClientOptions, clock: Clock): TokenClient {
  const credential = async () => ['authorization', `Bearer ${typeof clientToken === 'string' ? clientToken : await clientToken()}`] as const
  const { get, preflight, report, waitFor } = transfersOf(apiOf(options, clock, credential), new FeedReader(undefined, clock), clock)
  return { transfers: { get, preflight, report, waitFor } }
}

type Credential = readonly [header: string, value: string]

function apiOf({ baseUrl, fetch }: Omit<ClientOptions, 'key'>, clock: Clock, credential: () => Credential | Promise<Credential>): Api {
  const transport: Transport = { fetch: fetch ?? ((...args) => globalThis.fetch(...args)), clock, origin: new URL(baseUrl).origin }
  return {
    http: createFetchClient<paths>({ baseUrl, querySerializer: { array: { style: 'form', explode: false } } }),
    with: (options = {}, wait = 0) => ({
      fetch: async (request) => {
        request.headers.set(...await credential())
        return send(transport, request, options, wait)
      },
    }),
  }
}

/** What the groups of operations share. */
export interface Api {
  http: FetchClient<paths>
  /** The options of a request that is sent as the caller wants it, and held by the service for up to `wait` milliseconds. */
  with(options?: CallOptions, wait?: number): { fetch: (request: Request) => Promise<Response> }
}

/** The data of an answer: whatever is none has failed before. */
export async function dataOf<Data>(answer: Promise<{ data?: Data }>): Promise<Data> {
  return (await answer).data as Data
}

/** A path's parameter, which must name something. */
export function segment(id: string): string {
  if (id === '' || id === '.' || id === '..') throw new TypeError(`not an id: ${JSON.stringify(id)}`)
  return id
}

/** The header of a write that may be repeated: a key of the caller's, or a fresh one. */
export const idempotencyKey = (key: string | undefined) => ({ 'Idempotency-Key': key ?? crypto.randomUUID() })

/** CallOptions of a write that makes something. */
export interface CreateOptions extends CallOptions {
  /** Makes calls with the same key and body one, also those of different processes. Random by default, and kept over the tries of a call. */
  idempotencyKey?: string | undefined
}
