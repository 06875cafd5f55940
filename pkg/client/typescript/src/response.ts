import { ApiError } from './error.js'

/** The answer with its body read to the end, or the error of one whose body is no JSON. Only 202 and 204 may have none. */
export function parsed(what: string, response: Response, text: string): { answer: Response } | { failure: ApiError } {
  const { status } = response
  const headers = new Headers(response.headers)
  for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) headers.delete(name) // they are of the body as it was sent
  if (text === '' && (status === 202 || status === 204)) return { answer: new Response(null, { status: 204, headers }) }
  try {
    JSON.parse(text)
  } catch (cause) {
    return { failure: new ApiError(status, `${what}: ${status} with a body that is no JSON; check baseUrl`, { ...requestId(response), cause }) }
  }
  return { answer: new Response(text, { status, headers }) }
}

const temporary = new Set([408, 429, 500, 502, 503, 504])

/** The error of a response that is not a success. */
export function errorOf(what: string, response: Response, text: string, now: number): ApiError {
  const init = { ...requestId(response), retryAfter: retryAfterOf(response, now), temporary: temporary.has(response.status) }
  const body = errorBody(text)
  if (!body) return new ApiError(response.status, `${what}: ${response.status} without an error body`, init)
  const id = init.requestId ?? (typeof body.requestId === 'string' ? body.requestId : undefined) // other origins do not see the header
  return new ApiError(response.status, body.message, { ...init, requestId: id, code: body.code, details: body.details, body })
}

const requestId = ({ headers }: Response) => ({ requestId: headers.get('x-request-id') ?? undefined })

function errorBody(text: string): { code: string; message: string; requestId?: unknown; details?: unknown } | undefined {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body !== 'object' || body === null || !('code' in body) || !('message' in body)) return undefined
    const { code, message } = body
    if (typeof code !== 'string' || typeof message !== 'string') return undefined
    return { ...body, code, message }
  } catch {
    return undefined
  }
}

const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

// retryAfterOf reads Retry-After, which is either seconds or a date, as milliseconds. What is neither counts as none.
function retryAfterOf({ headers }: Response, now: number): number | undefined {
  const value = headers.get('retry-after')?.trim() ?? ''
  if (/^\d+$/.test(value)) return Number(value) * 1000
  const date = httpDate.test(value) ? Date.parse(value) : NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
