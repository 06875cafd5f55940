// A client in TypeScript whose types are generated from openapi.json: it creates an intent, lists it and cancels it.
import createClient from 'openapi-fetch'
import type { components, paths, webhooks } from './schema.js'

type Status = components['schemas']['TransferStatus']
// The compiler fails here if a status is missing or added.
const statuses: Record<Status, true> = {
  created: true, submitted: true, confirmed: true, filled: true, refunded: true, failed: true, expired: true, cancelled: true,
}

// What is posted to webhooks is told apart by its type: the compiler fails here unless each has its own data.
type Posted = { [Type in keyof webhooks]: webhooks[Type]['post']['requestBody']['content']['application/json'] }[keyof webhooks]
export function subject(event: Posted): string {
  switch (event.type) {
    case 'transfer.created': return event.data.orderId + (event.data.hash satisfies null)
    case 'transfer.failed': return event.data.failure // it is not null
    case 'webhook.disabled': return event.data.reason + (event.sequence satisfies null)
    case 'webhook.test': return event.data.url
    default: return `${event.data.to} ${event.sequence satisfies number}`
  }
}

declare const process: { env: Record<string, string | undefined> }
const { BASE_URL: baseUrl = '', API_KEY: key = '' } = process.env

const client = createClient<paths>({
  baseUrl,
  headers: { 'x-api-key': key },
  querySerializer: { array: { style: 'form', explode: false } },
})

function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what)
}

const body: components['schemas']['CreateTransfer'] = {
  source: {
    account: 'eip155:11155111:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    token: 'eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238',
    amount: '1000000',
  },
  destination: { account: 'eip155:11155111:0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
  reference: 'typed',
}
const once = { params: { header: { 'Idempotency-Key': 'typed-1' } }, body }
const made = await client.POST('/v2/transfers', once)
check(made.data !== undefined, `create: ${made.error?.code} ${made.error?.message}`)
const again = await client.POST('/v2/transfers', once)
check(again.data?.id === made.data.id, 'a repeat made a second intent')
check(again.response.headers.get('idempotent-replayed') === 'true', 'a repeat does not say so')
check(made.data.tx?.chainId === 11155111 && made.data.order?.scheme === 'oif-v1/StandardOrder', 'the record')

const listed = await client.GET('/v2/transfers', {
  params: { query: { type: 'transfer', status: ['created', 'cancelled'], limit: 10, reference: 'typed' } },
})
check(listed.data !== undefined, `list: ${listed.error?.code} ${listed.error?.message}`)
check(listed.data.length === 1 && listed.data[0]?.orderId === made.data.orderId && listed.data[0].source.amount === '1000000', 'the list')

const cancelled = await client.POST('/v2/transfers/{id}/cancel', { params: { path: { id: made.data.id } } })
check(cancelled.data?.status === 'cancelled' && cancelled.data.final && cancelled.data.tx === null, `cancel: ${cancelled.error?.code}`)

const refused = await client.POST('/v2/transfers', { body: { ...body, deadline: '2000-01-01T00:00:00Z' } })
check(refused.error?.code === 'INVALID_DEADLINE', `a deadline in the past: ${refused.error?.code}`)

console.log(JSON.stringify({ id: made.data.id, statuses: Object.keys(statuses).length }))
