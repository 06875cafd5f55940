import { apiOf, type ServiceOptions } from './api.js'
import { batchesOf, type Batches } from './batches.js'
import { systemClock, type Clock } from './clock.js'
import { eventsOf, type Events } from './events.js'
import { FeedReader } from './feed.js'
import { referenceOf, type Chains, type Origins, type Quotes, type Tokens, type Usage } from './reference.js'
import { transfersOf, type Transfers } from './transfers.js'
import { webhooksOf, type Webhooks } from './webhooks.js'

/** What a client needs to know. */
export interface ClientOptions extends ServiceOptions {
  /** An API key, `sk_test_…` or `sk_live_…`. Keep it on your servers: who has it is you. */
  key: string
}

/** What a client in a browser or an app needs to know, which has no key. */
export interface TokenClientOptions extends ServiceOptions {
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
