import { dataOf, idempotencyKey, segment, type Api, type CreateOptions } from './api.js'
import type * as records from './records.js'
import type { CallOptions } from './transport.js'

/** The endpoints that events are posted to. Only `create` and `delete` among the writes are tried again. */
export interface Webhooks {
  /** Makes a webhook. The answer has the secret that signs, which is shown once. */
  create(request: records.CreateWebhook, options?: CreateOptions): Promise<records.CreatedWebhook>
  list(options?: CallOptions): Promise<records.Webhook[]>
  get(id: string, options?: CallOptions): Promise<records.Webhook>
  update(id: string, changes: records.UpdateWebhook, options?: CallOptions): Promise<records.Webhook>
  /** Deletes a webhook. `NOT_FOUND` may mean that an earlier try did so. */
  delete(id: string, options?: CallOptions): Promise<void>
  /** Makes a new secret. The replaced one signs too for `gracePeriod` seconds, a day by default. */
  rotateSecret(id: string, request?: records.RotateWebhookSecret, options?: CallOptions): Promise<records.WebhookSecret>
  /** Posts an event of type `webhook.test`, or a sample of another type, whatever the webhook's types are. */
  test(id: string, request?: records.TestWebhook, options?: CallOptions): Promise<records.TestedWebhook>
  /** One page of what was delivered and what was not. The last has a `next` of null; an empty one may have another after it. */
  deliveries(id: string, query?: records.DeliveryQuery, options?: CallOptions): Promise<records.DeliveryPage>
  /** What became of one event, with the body that is sent and what the receiver answered, which is text of others. */
  delivery(id: string, eventId: string, options?: CallOptions): Promise<records.DeliveryDetails>
  /** Posts an event again that could not be delivered. */
  retry(id: string, eventId: string, options?: CallOptions): Promise<void>
  /** Posts all events after a cursor of the feed again. */
  replay(id: string, after: string, options?: CallOptions): Promise<void>
}

export function webhooksOf(api: Api): Webhooks {
  const { http } = api
  const at = (id: string, options: CallOptions | undefined) => ({ params: { path: { id: segment(id) } }, ...api.with(options) })
  return {
    create: async (body, options) =>
      dataOf(http.POST('/v2/webhooks', { params: { header: idempotencyKey(options?.idempotencyKey) }, body, ...api.with(options) })),
    list: async (options) => dataOf(http.GET('/v2/webhooks', api.with(options))),
    get: async (id, options) => dataOf(http.GET('/v2/webhooks/{id}', at(id, options))),
    update: async (id, body, options) => dataOf(http.PATCH('/v2/webhooks/{id}', { body, ...at(id, options) })),
    delete: async (id, options) => void (await http.DELETE('/v2/webhooks/{id}', at(id, options))),
    rotateSecret: async (id, body = {}, options) => dataOf(http.POST('/v2/webhooks/{id}/rotate-secret', { body, ...at(id, options) })),
    test: async (id, body = {}, options) => dataOf(http.POST('/v2/webhooks/{id}/test', { body, ...at(id, options) })),
    deliveries: async (id, query = {}, options) =>
      dataOf(http.GET('/v2/webhooks/{id}/deliveries', { params: { path: { id: segment(id) }, query }, ...api.with(options) })),
    delivery: async (id, eventId, options) => {
      const path = { id: segment(id), eventId: segment(eventId) }
      return dataOf(http.GET('/v2/webhooks/{id}/deliveries/{eventId}', { params: { path }, ...api.with(options) }))
    },
    retry: async (id, eventId, options) => {
      const path = { id: segment(id), eventId: segment(eventId) }
      await http.POST('/v2/webhooks/{id}/deliveries/{eventId}/retry', { params: { path }, ...api.with(options) })
    },
    replay: async (id, after, options) => void (await http.POST('/v2/webhooks/{id}/replay', { body: { after }, ...at(id, options) })),
  }
}
