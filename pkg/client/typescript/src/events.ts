import { dataOf, segment, type Api } from './api.js'
import type { Event, EventPage, EventQuery, EventType } from './records.js'
import type { CallOptions } from './transport.js'

/** Where and how to follow the feed. */
export interface FollowOptions {
  /** The cursor to read on from; `now` for what happens from now on; left out, all that is still kept. */
  after?: string | undefined
  /** Only these types. */
  types?: EventType[] | undefined
  /** Ends the loop, which fails with the signal's reason. */
  signal?: AbortSignal | undefined
  /** Called with the cursor behind the events that the loop is done with. Store it to follow on from there another time. */
  onCursor?: ((cursor: string) => void | Promise<void>) | undefined
}

/** The feed of everything that happens, in an order that never changes. */
export interface Events {
  /** One page of the feed. `types` of the query are separated by commas; with `wait`, an empty page takes up to so many seconds. */
  list(query?: EventQuery, options?: CallOptions): Promise<EventPage>
  /** An event by its id, which a webhook has as `webhook-id`. `EVENT_NOT_FOUND` also means that it is no longer kept. */
  get(id: string, options?: CallOptions): Promise<Event>
  /**
   * The events from a cursor on, without an end: it waits for the next. An event may come again after a restart, so remember ids. Where the
   * cursor's events are no longer kept it fails with the ApiError `CURSOR_EXPIRED`: read what was missed from the list of transfers.
   */
  follow(options?: FollowOptions): AsyncGenerator<Event, never, undefined>
}

const longPoll = 25 // seconds

export function eventsOf(api: Api): Events {
  const list: Events['list'] = (query = {}, options) =>
    dataOf(api.http.GET('/v2/events', { params: { query }, ...api.with(options, (query.wait ?? 0) * 1000) })) as Promise<EventPage>
  return {
    list,
    get: (id, options) => dataOf(api.http.GET('/v2/events/{id}', { params: { path: { id: segment(id) } }, ...api.with(options) })) as Promise<Event>,
    follow: async function* ({ after, types, signal, onCursor } = {}) {
      for (let cursor = after; ;) {
        const query = { wait: longPoll, ...(cursor !== undefined && { after: cursor }), ...(types && { types: types.join() }) }
        const { events, next } = await list(query, { signal })
        yield* events
        cursor = next
        await onCursor?.(cursor)
      }
    },
  }
}
