import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

// What needs no key is read without a client.
const open = ['GET /v2/health', 'GET /v2/openapi.json']

test('the client has every operation under /v2', () => {
  const dist = new URL('../dist/', import.meta.url)
  const sources = readdirSync(dist).filter((name) => name.endsWith('.js')).map((name) => readFileSync(new URL(name, dist), 'utf8')).join()
  const has = [...sources.matchAll(/\.([A-Z]+)\('(\/v2\/[^']+)'/g)].map(([, method, path]) => `${method} ${path}`)
  const { paths } = JSON.parse(readFileSync(new URL('../../../../core/web/api/openapi.json', import.meta.url)))
  const methods = ['get', 'post', 'put', 'patch', 'delete']
  const wanted = Object.entries(paths).filter(([path]) => path.startsWith('/v2/'))
    .flatMap(([path, item]) => methods.filter((method) => item[method]).map((method) => `${method.toUpperCase()} ${path}`))
  assert.deepEqual(has.sort(), wanted.filter((operation) => !open.includes(operation)).sort())
})
