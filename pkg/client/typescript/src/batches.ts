import { dataOf, segment, type Api, type CreateOptions } from './api.js'
import type { Clock } from './clock.js'
import { ApiError } from './error.js'
import type { Batch, BatchCalls, BatchItem, CallsQuery, CreatedBatch } from './records.js'
import type { CallOptions } from './transport.js'

/** Intents that are created together, and paid for together. A batch is named by its id. */
export interface Batches {
  /**
   * Makes an intent of each item, and returns the batches that it made, in the order of the items. The intents of one batch are all recorded or none.
   *
   * A list of more than 100, or of more than 64 KiB or the account's limit let into one batch, makes several, one after the other, each with a key of
   * its own: the `idempotencyKey` and `-1`, `-2` and so on. A list of up to 100 has the key itself, and where it is cut all the same, the first of its
   * batches has.
   *
   * Where a batch fails, nothing of it is recorded, unless there was no answer or it is `OUTCOME_UNKNOWN`, and none of those after it; those before
   * it stay: they are `made` of the error. Give an `idempotencyKey`: then repeating the call with the same items is safe, gets the same batches again
   * and makes the missing ones. `IDEMPOTENCY_KEY_REUSED` means that the items are others, or that the account's limit has changed, so that they are
   * cut elsewhere; then too nothing is made twice. `BATCH_REJECTED` means that items are refused: `batchFailures` of the error.
   */
  create(items: BatchItem[], options?: CreateOptions): Promise<CreatedBatch[]>
  get(id: string, options?: CallOptions): Promise<Batch>
  /** What a wallet sends for the intents of a batch that are not paid for yet. `sendBatch` of `@transfer-intents/client/viem` sends it. */
  calls(id: string, query?: CallsQuery, options?: CallOptions): Promise<BatchCalls>
  /**
   * Tells the service the hash of a transaction that has paid for intents of a batch: those with these ids, or all. It is told for all of them or for
   * none, and not tried again. `STATUS_CONFLICT` means that some may not have it: `batchFailures` of the error.
   */
  report(id: string, hash: string, transfers?: string[], options?: CallOptions): Promise<Batch>
}

// How many intents a batch may have, and how many bytes the body of its request.
const maxBatch = 100
const maxBytes = 64 * 1024

export function batchesOf(api: Api, clock: Clock): Batches {
  const at = (id: string, options: CallOptions | undefined) => ({ params: { path: { id: segment(id) } }, ...api.with(options) })
  // one makes a batch. It asks for no summaries, so it gets none.
  const one = (transfers: BatchItem[], key: string, options: CallOptions) =>
    dataOf(api.http.POST('/v2/transfers/batch', { params: { header: { 'Idempotency-Key': key } }, body: { transfers }, ...api.with(options) })) as Promise<CreatedBatch>
  return {
    create: async (items, { idempotencyKey = crypto.randomUUID(), signal, timeout } = {}) => {
      const deadline = clock.now() + (timeout ?? Infinity)
      const made: CreatedBatch[] = []
      let most = maxBatch
      for (let first = 0; first < items.length || made.length === 0;) {
        const part = items.slice(first, first + fitting(items.slice(first), most))
        const key = items.length > maxBatch || made.length > 0 ? `${idempotencyKey}-${made.length + 1}` : idempotencyKey
        try {
          const left = deadline - clock.now()
          if (left <= 0) throw new ApiError(0, `batches.create has no time left of ${timeout} ms`)
          made.push(await one(part, key, { signal, timeout: left }))
        } catch (error) {
          const limit = batchLimit(error)
          if (limit === 0 || limit >= part.length) throw ofPart(error, made, first, part.length, items.length)
          most = limit // the service has recorded nothing, so the same key stands for fewer items
          continue
        }
        first += part.length
      }
      return made
    },
    get: async (id, options) => dataOf(api.http.GET('/v2/batches/{id}', at(id, options))),
    calls: async (id, query = {}, options) =>
      dataOf(api.http.GET('/v2/batches/{id}/calls', { params: { path: { id: segment(id) }, query }, ...api.with(options) })),
    report: async (id, hash, transfers, options) =>
      dataOf(api.http.POST('/v2/batches/{id}/transaction', { body: { hash, ...(transfers && { transfers }) }, ...at(id, options) })),
  }
}

// fitting is how many of the items make one batch of at most so many, one at least if there is any.
function fitting(items: BatchItem[], most: number): number {
  const encoder = new TextEncoder()
  let size = '{"transfers":[]}'.length
  for (const [n, item] of items.slice(0, most).entries()) {
    size += encoder.encode(`${JSON.stringify(item)},`).length
    if (n > 0 && size > maxBytes) return n
  }
  return Math.min(items.length, most)
}

// batchLimit is how many intents a batch of the account may have, if the error says that it had too many, or 0.
function batchLimit(error: unknown): number {
  if (!(error instanceof ApiError) || error.code !== 'BATCH_TOO_LARGE') return 0
  const { max } = (error.details ?? {}) as { max?: unknown }
  return typeof max === 'number' ? max : 0
}

// ofPart says in an error what was made before, and which items of a longer list it is about.
function ofPart(error: unknown, made: CreatedBatch[], first: number, count: number, all: number): unknown {
  if (!(error instanceof ApiError)) return error
  error.made = made
  if (count < all) {
    error.firstItem = first
    error.message = `items ${first} to ${first + count - 1} of the list: ${error.message}`
  }
  return error
}
