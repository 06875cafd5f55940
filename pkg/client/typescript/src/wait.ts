import type { Clock } from './clock.js'
import { ApiError } from './error.js'
import type { Transfer, TransferStatus } from './records.js'
import type { CallOptions } from './transport.js'

/** What to wait for. The timeout is that of the whole wait. */
export interface WaitOptions extends CallOptions {
  /** The wanted status. An intent may end without it: look at the status of what is returned. */
  until?: TransferStatus | undefined
  /** Called with the record first read and at each change of status, also one that a reorganization of the chain takes back. */
  onChange?: ((transfer: Transfer) => void | Promise<void>) | undefined
}

const firstInterval = 1_000
const maxInterval = 10_000

/** Reads until the intent is final or has the wanted status: after a second at first, then ever more rarely up to 10 seconds, and often again after a change. */
export async function waitFor(
  get: (id: string, options: CallOptions) => Promise<Transfer>, clock: Clock, id: string, { until, onChange, signal, timeout }: WaitOptions = {},
): Promise<Transfer> {
  const deadline = clock.now() + (timeout ?? Infinity)
  let interval = firstInterval
  let last: TransferStatus | undefined
  for (;;) {
    const transfer = await get(id, { signal, timeout: deadline - clock.now() })
    const { status } = transfer
    if (status !== last) {
      interval = firstInterval
      await onChange?.(transfer)
    }
    last = status
    if (transfer.final || status === until) return transfer
    if (clock.now() + interval >= deadline) throw new ApiError(0, `transfer ${id} was still ${status} when the timeout of ${timeout} ms ended`)
    await clock.sleep(interval, signal)
    interval = Math.min(interval * 1.5, maxInterval)
  }
}
