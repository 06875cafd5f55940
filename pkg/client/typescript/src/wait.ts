import type { Clock } from './clock.js'
import { ApiError } from './error.js'
import type { FeedReader } from './feed.js'
import type { Transfer, TransferStatus } from './records.js'
import type { CallOptions } from './transport.js'

/** What to wait for. */
export interface WaitOptions extends CallOptions {
  /** Milliseconds for the whole wait: two hours by default, an intent's usual deadline and as long again. `Infinity` for none. */
  timeout?: number | undefined
  /** The wanted status. An intent may end without it: look at the status of what is returned. */
  until?: TransferStatus | undefined
  /** Called with the record first read and at each change of status, also one that a reorganization of the chain takes back. */
  onChange?: ((transfer: Transfer) => void | Promise<void>) | undefined
}

const defaultTimeout = 2 * 3600_000
// Between two reads while the feed cannot be followed, and while it is.
const firstInterval = 1_000
const maxInterval = 10_000
const liveInterval = 60_000

/** Reads until the intent has ended or has the wanted status: when the feed tells of it, or ever more rarely up to every 10 seconds without the feed. */
export async function waitFor(
  get: (id: string, options: CallOptions) => Promise<Transfer>, feed: FeedReader, clock: Clock, id: string,
  { until, onChange, signal, timeout = defaultTimeout }: WaitOptions = {},
): Promise<Transfer> {
  const deadline = clock.now() + timeout
  let interval = firstInterval
  let last: TransferStatus | undefined
  let failure: unknown
  let woken = new AbortController()
  const leave = feed.join(id, () => woken.abort())
  try {
    while (clock.now() < deadline) {
      woken = new AbortController()
      const transfer = await get(id, { signal, timeout: deadline - clock.now() }).catch((error: unknown) => {
        if (!(error instanceof ApiError && error.temporary)) throw error
        failure = error
        return error
      })
      if (!(transfer instanceof ApiError)) {
        if (transfer.status !== last) {
          interval = firstInterval
          await onChange?.(transfer)
        }
        last = transfer.status
        if (transfer.ended || transfer.final || last === until) return transfer
        feed.start()
      }
      const failed = transfer instanceof ApiError // then an event would be no reason to ask sooner
      const pause = failed ? Math.max(transfer.retryAfter ?? 0, interval) : feed.live ? liveInterval : interval
      await sleep(clock, Math.min(pause, deadline - clock.now()), failed ? undefined : woken.signal, signal)
      interval = Math.min(interval * 1.5, maxInterval)
    }
  } finally {
    leave()
  }
  const state = last === undefined ? 'could not be read' : `was still ${last}`
  throw new ApiError(0, `transfer ${id} ${state} when the timeout of ${timeout} ms ended`, { cause: failure })
}

// sleep ends after so many milliseconds or when it is woken, and fails where the caller aborts.
async function sleep(clock: Clock, milliseconds: number, woken: AbortSignal | undefined, signal: AbortSignal | undefined): Promise<void> {
  const stop = new AbortController()
  const end = () => stop.abort()
  const signals = [woken, signal].filter((one) => one !== undefined)
  for (const one of signals) one.addEventListener('abort', end)
  try {
    if (!signals.some(({ aborted }) => aborted)) await clock.sleep(Math.max(milliseconds, 0), stop.signal)
  } catch (error) {
    if (!stop.signal.aborted) throw error
  } finally {
    for (const one of signals) one.removeEventListener('abort', end)
  }
  signal?.throwIfAborted()
}
