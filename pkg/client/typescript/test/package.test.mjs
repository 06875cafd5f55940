import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

const program = `
import { ApiError, createClient, verifyWebhook, type Client, type WebhookEvent } from '@transfer-intents/client'

export async function statusOf(client: Client, id: string): Promise<string | undefined> {
  try {
    const { status } = await client.transfers.waitFor(id, { until: 'filled', timeout: 60_000 })
    return status
  } catch (error) {
    if (error instanceof ApiError && error.code === 'NOT_FOUND') return undefined
    throw error
  }
}

export function subject(event: WebhookEvent): string {
  switch (event.type) {
    case 'transfer.failed': return event.data.failure // it is not null
    case 'webhook.disabled': return event.data.reason + (event.sequence satisfies null)
    default: return event.id
  }
}

export async function failures(client: Client): Promise<string> {
  for await (const event of client.events.follow({ after: 'now' })) {
    if (event.type === 'transfer.failed') return event.data.failure // told apart as a posted one is
    // @ts-expect-error the feed has no such type
    if (event.type === 'webhook.test') return event.id
  }
  return ''
}

const client = createClient({ baseUrl: 'https://intents.example.com', key: 'sk_test_1' })
// @ts-expect-error there is no such status
const wrong = () => client.transfers.waitFor('1', { until: 'paid' })
console.log(typeof wrong, Object.keys(client).sort().join(), typeof verifyWebhook)
`

// A project without viem, which is optional, installs the packed package, compiles a program and runs it.
test('a fresh project uses the packed package', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'fresh-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const run = (cwd, command, ...args) => {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
    assert.equal(status, 0, stdout + stderr)
    return stdout
  }
  run(root, 'npm', 'pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', dir)
  const [tarball] = readdirSync(dir)
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ type: 'module', dependencies: { '@transfer-intents/client': `file:${tarball}` } }))
  run(dir, 'npm', 'install', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error')
  assert.deepEqual(readdirSync(join(dir, 'node_modules/@transfer-intents/client')).sort(), ['LICENSE', 'README.md', 'dist', 'examples', 'package.json'])
  writeFileSync(join(dir, 'program.ts'), program)
  run(dir, process.execPath, join(root, 'node_modules/typescript/bin/tsc'), '--strict', '--exactOptionalPropertyTypes', '--target', 'es2022', '--lib', 'es2022,dom', '--module', 'nodenext', 'program.ts')
  assert.equal(run(dir, process.execPath, 'program.js'), 'function batches,chains,events,origins,quotes,tokens,transfers,usage,webhooks function\n')
})

// The service serves client.tgz, which is kept beside the sources: it has what they make.
test('client.tgz is made of these sources', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'packed-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const content = (name, packed) => {
    mkdirSync(join(dir, name))
    const { status, stderr } = spawnSync('tar', ['-xzf', packed, '-C', join(dir, name)], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
    return Object.fromEntries(readdirSync(join(dir, name), { recursive: true, withFileTypes: true })
      .filter((file) => file.isFile())
      .map((file) => join(file.parentPath, file.name))
      .map((path) => [path.slice(join(dir, name).length), readFileSync(path, 'utf8')]))
  }
  const { status, stdout, stderr } = spawnSync('npm', ['pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', dir], { cwd: root, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.deepEqual(content('kept', join(root, 'client.tgz')), content('made', join(dir, stdout.trim())), 'run: npm run package')
})
