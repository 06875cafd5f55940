import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { verifyWebhook, WebhookVerificationError } from '../dist/index.js'
import { fixtures } from './server.mjs'

const { now, cases, refusedSecrets } = JSON.parse(readFileSync(new URL('webhooks.json', fixtures)))

for (const { name, verified, secrets, headers, body } of cases) {
  test(name, async () => {
    const forms = [[body, headers], [new TextEncoder().encode(body), new Headers(headers)]]
    for (const [bytes, fields] of forms) {
      const verifying = verifyWebhook(bytes, fields, secrets, now * 1000)
      if (!verified) await assert.rejects(verifying, WebhookVerificationError)
      else assert.deepEqual(await verifying, { id: headers['webhook-id'], ...JSON.parse(body) })
    }
  })
}

for (const { name, secrets } of refusedSecrets) {
  test(`refused: ${name}`, () => assert.rejects(verifyWebhook(cases[0].body, cases[0].headers, secrets, now * 1000), TypeError))
}
