import type { BatchFailure, CreatedBatch } from './records.js'
import type { components } from './schema.js'

/** The code of an error body. The empty one stands for a response without an error body, and for none at all. */
export type ErrorCode = components['schemas']['ErrorCode'] | ''

/** What is known of a failed request. */
export interface ApiErrorInit {
  code?: string
  requestId?: string | undefined
  retryAfter?: number | undefined
  temporary?: boolean
  details?: unknown
  body?: unknown
  cause?: unknown
}

/** A request that failed: the service's error, or a connection without a response. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** The HTTP status; 0 where there was no response to read: the connection failed, or the time was up. `cause` has more. */
  readonly status: number
  /** Tells errors apart. A newer service may have codes that this version does not list. */
  readonly code: ErrorCode
  /** Names the request in the service's logs. */
  readonly requestId: string | undefined
  /** Milliseconds after which the service asks to try again. */
  readonly retryAfter: number | undefined
  /** Whether it may pass by itself: a lost connection, and 408, 429, 500, 502, 503 and 504. */
  readonly temporary: boolean
  /** What the error body has as `details`; its shape depends on `code`. */
  readonly details: unknown
  /** The whole error body: a few codes have members beside `details`. */
  readonly body: unknown
  /** Of `batches.create`: the batches that were made before the one that failed. */
  made: CreatedBatch[] = []
  /** Of `batches.create`: the place in the list of the first item of the batch that failed. */
  firstItem = 0

  /** The JSON Pointers to the addresses that the service does not serve, such as `/destination/account`, for `ADDRESS_NOT_ALLOWED`. */
  get addressPaths(): string[] {
    const { paths } = (this.details ?? {}) as { paths?: unknown }
    return this.code === 'ADDRESS_NOT_ALLOWED' && Array.isArray(paths) ? paths.filter((path) => typeof path === 'string') : []
  }

  /**
   * The items because of which a batch was refused, ascending, for `BATCH_REJECTED` and for `STATUS_CONFLICT` of a batch. Their `index` is the place in
   * the list that was given to `batches.create`, or in the batch of a report. Of a list that makes several batches, they are those of one.
   */
  get batchFailures(): BatchFailure[] {
    const { failures } = (this.details ?? {}) as { failures?: unknown }
    return Array.isArray(failures) ? failures.map((failure: BatchFailure) => ({ ...failure, index: failure.index + this.firstItem })) : []
  }

  constructor(status: number, message: string, init: ApiErrorInit = {}) {
    super(messageOf(message, init), { cause: init.cause })
    this.status = status
    this.code = (init.code ?? '') as ErrorCode
    this.requestId = init.requestId
    this.retryAfter = init.retryAfter
    this.temporary = init.temporary ?? false
    this.details = init.details
    this.body = init.body
  }
}

// messageOf adds to a message what a log needs: the first issue of a request that is not valid, and the request id.
function messageOf(message: string, { details, requestId }: ApiErrorInit): string {
  const { issues } = (details ?? {}) as { issues?: { path?: string; message?: string }[] }
  const issue = Array.isArray(issues) ? issues[0] : undefined
  const more = issue?.message === undefined ? '' : ` First: ${issue.path ? `${issue.path} ` : ''}${issue.message}.`
  return message + more + (requestId === undefined ? '' : ` (request ${requestId})`)
}
