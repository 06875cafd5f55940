/** The time and chance that the client goes by. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** From 0 to 1. */
  random(): number
  /** Ends after so many milliseconds; fails with the signal's reason when that is aborted. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: Date.now,
  random: Math.random,
  sleep: (milliseconds, signal) => new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, milliseconds)
    signal?.addEventListener('abort', abort, { once: true })
  }),
}
