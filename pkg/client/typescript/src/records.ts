import type { components, operations, webhooks } from './schema.js'

type Schemas = components['schemas']

export type Transfer = Schemas['Transfer']
export type TransferSummary = Schemas['TransferSummary']
export type TransferStatus = Schemas['TransferStatus']
export type TransferType = Schemas['TransferType']
export type FailureReason = Schemas['FailureReason']
/** What to move, or the quote to make an intent of. */
export type CreateTransfer = Schemas['CreateTransferInput'] | Schemas['CreateQuotedTransferInput']
/** What to move with an intent of a batch. */
export type BatchItem = Schemas['BatchItem']
/** A batch as it was made, with the full records of its intents. */
export type CreatedBatch = Schemas['CreatedBatch']
/** A batch as it is now, with the summaries of its intents. */
export type Batch = Schemas['Batch']
export type BatchCalls = Schemas['BatchCalls']
export type BatchCallsRequest = Schemas['BatchCallsRequest']
export type ExcludedTransfer = Schemas['ExcludedTransfer']
export type BatchFailure = Schemas['BatchFailure']
export type Transaction = Schemas['Transaction']
/** The parameter of wallet_sendCalls. */
export type SendCalls = Schemas['SendCalls']
/** What the user of an intent signs in place of a transaction. */
export type Signing = Schemas['Signing']
/** The one attempt to hand a signed order to a solver. */
export type Submission = Schemas['Submission']
/** Typed structured data (EIP-712). */
export type TypedData = Schemas['TypedData']
/** The transaction of a signed intent, which any account can send. */
export type Relay = Schemas['Relay']
/** What lets who has it read, check and report one intent. */
export type ClientToken = Schemas['ClientToken']
export type Preflight = Schemas['Preflight']
export type Refund = Schemas['Refund']
export type CreateQuotes = Schemas['CreateQuotesInput']
export type Quotes = Schemas['Quotes']
export type Quote = Schemas['Quote']
export type Token = Schemas['TokenDefinition']
export type Chain = Schemas['Chain']
export type Usage = Schemas['Usage']
export type UsageGranularity = Schemas['UsageGranularity']
export type EventType = Schemas['EventType']
/** The events of one intent. */
export type TransferEvents = Omit<Schemas['TransferEvents'], 'events'> & { events: Event[] }
/** A page of the feed. */
export type EventPage = Omit<Schemas['EventPage'], 'events'> & { events: Event[] }
export type Webhook = Schemas['Webhook']
export type CreateWebhook = Schemas['CreateWebhookInput']
export type CreatedWebhook = Schemas['CreatedWebhook']
export type SimulatedStatus = Schemas['SimulatedStatus']
export type UpdateTransfer = Schemas['UpdateTransferInput']
export type UpdateWebhook = Schemas['UpdateWebhookInput']
export type RotateWebhookSecret = Schemas['RotateWebhookSecretInput']
export type WebhookSecret = Schemas['WebhookSecret']
export type TestWebhook = Schemas['TestWebhookInput']
export type TestedWebhook = Schemas['TestedWebhook']
export type Delivery = Schemas['Delivery']
export type DeliveryDetails = Schemas['DeliveryDetails']
export type DeliveryPage = Schemas['DeliveryPage']

type Query<Operation extends keyof operations> = NonNullable<operations[Operation]['parameters']['query']>

/** Which intents to list. */
export type TransferQuery = Omit<Query<'listTransfers'>, 'label.KEY'> & {
  /** Values by key of labels that an intent must have, all of them. */
  labels?: Record<string, string> | undefined
}
/** What the calls of a batch are for: `max-calls` is how many the wallet takes in one request, 2 to 200 and 10 by default. */
export type CallsQuery = Query<'getBatchCalls'>
/** Which deliveries to list. */
export type DeliveryQuery = Query<'listDeliveries'>
/** Which part of the feed to read. */
export type EventQuery = Query<'listEvents'>

// What is posted for each type.
type Posted = { [Type in keyof webhooks]: webhooks[Type]['post']['requestBody']['content']['application/json'] }

/** An event as it is posted to a webhook, told apart by its `type`, with the id of the header `webhook-id`. */
export type WebhookEvent = { [Type in keyof Posted]: Posted[Type] & { id: string } }[keyof Posted]

/** An event of the feed, told apart by its `type` as one that is posted is. The feed has no `webhook.test`. */
export type Event = Exclude<WebhookEvent, { type: 'webhook.test' }>
