import { dataOf, segment, type Api } from './api.js'
import type * as records from './records.js'
import type { CallOptions } from './transport.js'

/** What providers ask for swaps and bridges. */
export interface Quotes {
  /** Asks the providers. It is not tried again. */
  create(request: records.CreateQuotes, options?: CallOptions): Promise<records.Quotes>
  get(id: string, options?: CallOptions): Promise<records.Quote>
}

/** The tokens that the service lists. */
export interface Tokens {
  /** All of them, or those of one chain, such as `eip155:1`. */
  list(chainId?: string, options?: CallOptions): Promise<records.Token[]>
  /**
   * At most 100 that have the text in their symbol or name, or have it as their address, the best matches first. `chainId` searches one chain alone.
   */
  search(text: string, chainId?: string, options?: CallOptions): Promise<records.Token[]>
}

/** The chains that the service knows. */
export interface Chains {
  list(options?: CallOptions): Promise<records.Chain[]>
}

/** The origins of the pages that may send client tokens of the account, such as `https://app.example.com`. */
export interface Origins {
  get(options?: CallOptions): Promise<string[]>
  /** Replaces the origins by at most 20 others, none for no page at all. It is not tried again. */
  update(origins: string[], options?: CallOptions): Promise<string[]>
}

/** Requests of the key and of its account. */
export interface Usage {
  /** By minute, the last hour, unless another granularity is given. Counts are some seconds late. */
  get(granularity?: records.UsageGranularity, options?: CallOptions): Promise<records.Usage>
}

export const referenceOf = (api: Api): { quotes: Quotes; tokens: Tokens; chains: Chains; origins: Origins; usage: Usage } => {
  const tokens = (search?: string, chainId?: string, options?: CallOptions): Promise<records.Token[]> => dataOf(api.http.GET('/v2/tokens', {
    params: { query: { ...(chainId !== undefined && { 'chain-id': chainId }), ...(search !== undefined && { search }) } }, ...api.with(options),
  }))
  return {
    quotes: {
      create: (body, options) => dataOf(api.http.POST('/v2/quotes', { body, ...api.with(options) })),
      get: (id, options) => dataOf(api.http.GET('/v2/quotes/{id}', { params: { path: { id: segment(id) } }, ...api.with(options) })),
    },
    tokens: {
      list: (chainId, options) => tokens(undefined, chainId, options),
      search: (text, chainId, options) => tokens(text, chainId, options),
    },
    origins: {
      get: async (options) => (await dataOf(api.http.GET('/v2/origins', api.with(options)))).origins,
      update: async (origins, options) => (await dataOf(api.http.PATCH('/v2/origins', { body: { origins }, ...api.with(options) }))).origins,
    },
    usage: {
      get: (granularity, options) =>
        dataOf(api.http.GET('/v2/usage', { params: { query: granularity === undefined ? {} : { granularity } }, ...api.with(options) })),
    },
    chains: { list: (options) => dataOf(api.http.GET('/v2/chains', api.with(options))) },
  }
}
