import createFetchClient, { type Client as FetchClient } from 'openapi-fetch'
import type { Clock } from './clock.js'
import type { paths } from './schema.js'
import { send, type CallOptions, type Transport } from './transport.js'

/** What the groups of operations share. */
export interface Api {
  http: FetchClient<paths>
  /** The options of a request that is sent as the caller wants it, and held by the service for up to `wait` milliseconds. */
  with(options?: CallOptions, wait?: number): { fetch: (request: Request) => Promise<Response> }
}

/** What a request proves its right with: the name and value of a header. */
export type Credential = readonly [header: string, value: string]

/** Where the service is, and what replaces the global fetch. */
export interface ServiceOptions {
  /** Where the service is, for example `https://intents.example.com`. The key goes to this origin only. */
  baseUrl: string
  /** In place of the global fetch. It must honor `redirect` and `signal`. */
  fetch?: typeof globalThis.fetch
}

/** Requests to a service, each with a fresh credential. */
export function apiOf({ baseUrl, fetch }: ServiceOptions, clock: Clock, credential: () => Credential | Promise<Credential>): Api {
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
