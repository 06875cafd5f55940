import type { Clock } from './clock.js'
import { ApiError } from './error.js'
import type { Events } from './events.js'

interface Waiter {
  id: string
  wake: () => void
}

const longPoll = 25 // seconds
const firstPause = 1_000
const maxPause = 30_000

/** Follows the feed for all waits of a client together, with one request at a time whatever their number, while there are any. */
export class FeedReader {
  /** Whether the feed is followed. Until then, and while it fails, a wait looks by itself. */
  live = false
  readonly #list: Events['list'] | undefined
  readonly #clock: Clock
  readonly #waits = new Set<Waiter>()
  #reader: AbortController | undefined

  /** Without a list there is no feed to follow, and every wait looks by itself. */
  constructor(list: Events['list'] | undefined, clock: Clock) {
    this.#list = list
    this.#clock = clock
  }

  /** Calls `wake` when the intent of an id or order id may have changed, until the returned function is called. The last one to leave ends the reader. */
  join(id: string, wake: () => void): () => void {
    const waiter = { id: id.toLowerCase(), wake }
    this.#waits.add(waiter)
    return () => {
      this.#waits.delete(waiter)
      if (this.#waits.size > 0) return
      this.#reader?.abort()
      this.#reader = undefined
      this.live = false
    }
  }

  /** Starts the reader unless it runs. */
  start(): void {
    if (this.#reader || !this.#list) return
    this.#reader = new AbortController()
    void this.#read(this.#list, this.#reader.signal)
  }

  // #read ends with the signal, or with a failure that does not pass.
  async #read(list: Events['list'], signal: AbortSignal): Promise<void> {
    let cursor: string | undefined
    let pause = firstPause
    while (!signal.aborted) {
      try {
        const from = cursor === undefined ? { after: 'now' } : { after: cursor, wait: longPoll }
        const { events, next } = await list({ ...from, types: 'transfer.*' }, { signal })
        if (signal.aborted) return
        this.live = true
        const changed = new Set(events.flatMap(({ data }) => 'orderId' in data ? [data.id, data.orderId] : []))
        this.#wake(({ id }) => cursor === undefined || changed.has(id))
        cursor = next
        pause = firstPause
      } catch (error) {
        if (signal.aborted) return
        const expired = error instanceof ApiError && error.code === 'CURSOR_EXPIRED' && cursor !== undefined
        cursor = undefined
        if (expired) continue
        if (this.live) {
          this.live = false
          this.#wake(() => true)
        }
        if (!(error instanceof ApiError && error.temporary)) return
        await this.#clock.sleep(Math.max(pause, error.retryAfter ?? 0), signal).catch(() => {}) // the loop looks at the signal
        pause = Math.min(2 * pause, maxPause)
      }
    }
  }

  #wake(concerned: (waiter: Waiter) => boolean): void {
    for (const waiter of this.#waits) if (concerned(waiter)) waiter.wake()
  }
}
