// A program with the TypeScript client: it creates an intent, lists it and cancels it.
import { ApiError, createClient, type CreateTransfer, type TransferStatus, type WebhookEvent } from '@transfer-intents/client'

// The compiler fails here if a status is missing or added.
const statuses: Record<TransferStatus, true> = {
  created: true, submitted: true, confirmed: true, filled: true, refunded: true, failed: true, expired: true, cancelled: true,
}

// What is posted to webhooks is told apart by its type: the compiler fails here unless each has its own data.
export function subject(event: WebhookEvent): string {
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
const { transfers } = createClient({ baseUrl, key })

function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what)
}

const body = {
  source: {
    account: 'eip155:11155111:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    token: 'eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238',
    amount: '1000000',
  },
  destination: { account: 'eip155:11155111:0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
  reference: 'typed',
} satisfies CreateTransfer
const made = await transfers.create(body, { idempotencyKey: 'typed-1' })
const again = await transfers.create(body, { idempotencyKey: 'typed-1' })
check(again.id === made.id, 'a repeat made a second intent')
check(made.tx?.chainId === 11155111 && made.order?.scheme === 'oif-v1/StandardOrder', 'the record')

const listed = []
for await (const one of transfers.all({ type: 'transfer', status: ['created', 'cancelled'], limit: 10, reference: 'typed' })) listed.push(one)
check(listed.length === 1 && listed[0]?.orderId === made.orderId && listed[0].source.amount === '1000000', 'the list')

const cancelled = await transfers.cancel(made.id)
check(cancelled.status === 'cancelled' && cancelled.final && cancelled.tx === null, `cancel: ${cancelled.status}`)

const refused: unknown = await transfers.create({ ...body, deadline: '2000-01-01T00:00:00Z' }).catch((error: unknown) => error)
check(refused instanceof ApiError && refused.code === 'INVALID_DEADLINE', `a deadline in the past: ${refused}`)

console.log(JSON.stringify({ id: made.id, statuses: Object.keys(statuses).length }))
