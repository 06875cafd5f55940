// Receives webhooks: verifies signatures, responds at once, handles every event once, and reads the feed for missed events.
import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'

// A delivery has the id in its header webhook-id, the feed has it in the event.
type Event = {
  type: string
  sequence: number | null // counts the events of one intent from 1; null for webhook.disabled
  data: { id?: string } // the intent as of the event, among other things
}

const { WEBHOOK_SECRET: secret = '', API_URL: api = '', API_KEY: key = '', LISTEN: listen = '127.0.0.1:9000' } = process.env
const webhook = new Webhook(secret) // whsec_…; it throws where there is none

// In your service, tables of its database: seen with the event's id as primary key, last with the intent's id, and the cursor.
const seen = new Set<string>()
const last = new Map<string, number>()
let cursor = ''

// Receives one delivery. A response other than 2xx, or none within 15 seconds, leads to a retry.
const server = createServer(async (request, response) => {
  const answer = (status: number) => void response.writeHead(status).end()
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      if ((size += chunk.length) > 64 << 10) return answer(413)
    }
  } catch {
    return // the client went away
  }
  const body = Buffer.concat(chunks).toString()
  let event: Event
  try {
    // The signature covers the raw bytes, so verify before a framework parses the body. verify rejects timestamps that are more
    // than 5 minutes off.
    event = webhook.verify(body, request.headers as Record<string, string>) as Event
  } catch {
    return answer(401)
  }
  take(String(request.headers['webhook-id']), event)
  answer(204)
})

// Handles an event unless it was handled before: every event may arrive more than once, by webhook and in the feed. In your service it
// stores the event in one transaction with seen and last, and a job does the slow work, so that the response does not wait for it.
function take(id: string, { type, sequence, data }: Event) {
  if (seen.has(id)) return
  seen.add(id)
  if (sequence === null) return console.log('handled', id, type)
  const intent = data.id ?? ''
  const before = last.get(intent) ?? 0
  if (sequence > before + 1) void readFeed() // the events between arrive later, or only in the feed
  if (sequence < before) return console.log('handled', id, type, 'late') // deliveries are unordered: do not overwrite newer state
  last.set(intent, sequence)
  console.log('handled', id, type)
}

// Handles all events after the cursor, which advances only after they were handled. A call during a read makes it read once more.
let reading = false
let again = false
async function readFeed() {
  again = true
  if (reading) return
  reading = true
  try {
    while (again) {
      again = false
      while (await readPage()) {}
    }
  } catch (error) {
    console.warn('the feed cannot be read:', error) // the next minute tries again
  } finally {
    reading = false
  }
}

// Reports whether there may be more.
async function readPage(): Promise<boolean> {
  const query = new URLSearchParams({ limit: '1000', ...(cursor && { after: cursor }) })
  const response = await fetch(`${api}/v2/events?${query}`, { headers: { 'x-api-key': key }, signal: AbortSignal.timeout(10_000) })
  if (response.status === 410 && cursor) { // expired events show in GET /v2/transfers only
    cursor = ''
    return true
  }
  if (!response.ok) throw new Error(`GET /v2/events: ${response.status}`)
  const { events, next } = await response.json() as { events: ({ id: string } & Event)[], next: string }
  for (const event of events) take(event.id, event)
  cursor = next
  return events.length > 0
}

// The feed is read when the receiver starts, when an event is missing, and once a minute.
void readFeed()
setInterval(readFeed, 60_000)
const { hostname, port } = new URL(`http://${listen}`)
server.listen(Number(port), hostname)
