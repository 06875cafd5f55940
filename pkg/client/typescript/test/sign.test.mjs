import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createWalletClient, custom } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { digestOf, relay, ReportError, SendError, sign, signForToken, tokenCall } from '../dist/viem.js'
import { hashOf, settler, token, walletOf } from './wallet.mjs'

// What contracts took and refused: the signatures are of development accounts.
const recording = JSON.parse(readFileSync(new URL('../../../../core/transfer/testdata/recorded_gasless.json', import.meta.url)))
const fields = [['name', 'string'], ['version', 'string'], ['chainId', 'uint256'], ['verifyingContract', 'address']]

// What the service gives to sign; the recording has the types once.
function typedDataOf({ typedData }) {
  const EIP712Domain = fields.filter(([name]) => name in typedData.domain).map(([name, type]) => ({ name, type }))
  return { ...typedData, types: { EIP712Domain, ...recording.types[typedData.types] } }
}

const recorded = [...recording.cases, ...recording.transfers].filter(({ typedData }) => typedData)
const caseOf = (name) => recorded.find((one) => one.name === name)

const record = (one) => ({
  id: 'one', status: 'created', source: { account: `eip155:31337:${one.signer}` },
  signing: { typedData: typedDataOf(one), digest: one.digest, expiresAt: new Date(Date.now() + 60_000).toISOString() },
})

test('the digests of all recorded typed data', () => {
  assert.ok(recorded.length > 70)
  for (const one of recorded) assert.equal(digestOf(typedDataOf(one)), one.digest, one.name)
})

for (const name of ['permit2: good', '3009: good']) {
  test(`the signature of a key: ${name}`, async () => {
    const request = async ({ method }) => method === 'eth_chainId' ? '0x7a69' : assert.fail(`asked for ${method}`)
    const account = mnemonicToAccount('test test test test test test test test test test test junk', { addressIndex: 1 })
    const wallet = createWalletClient({ account, transport: custom({ request }) })
    assert.equal(await sign(wallet, record(caseOf(name))), `0x${caseOf(name).signature.slice(4)}`) // behind the byte of its type
  })
}

test('a wallet gets the typed data as they are', async () => {
  const one = caseOf('permit2: good')
  const { wallet, sent } = walletOf({ accounts: [one.signer] })
  assert.equal(await sign(wallet, record(one)), '0x1')
  const [{ signer, ...typedData }] = sent
  assert.equal(signer.toLowerCase(), one.signer)
  assert.equal(digestOf(typedData), one.digest)
})

const good = record(caseOf('permit2: good'))
const changed = structuredClone(good)
changed.signing.typedData.message.witness.outputs[0].amount = '1'
const refusals = {
  'an intent whose user sends a transaction': [{ ...good, signing: null }, {}, 'NO_TX'],
  'an intent that cannot be signed any more': [{ ...good, signing: { ...good.signing, typedData: null } }, {}, 'NO_TX'],
  'a time to sign that has passed': [{ ...good, signing: { ...good.signing, expiresAt: new Date(Date.now() - 1000).toISOString() } }, {}, 'EXPIRED'],
  'typed data of another order than the digest': [changed, {}, 'WRONG_DIGEST'],
  'another chain': [good, { chainId: '0x1' }, 'OTHER_CHAIN'],
  'another account': [good, { accounts: [token] }, 'OTHER_ACCOUNT'],
}
for (const [name, [transfer, setup, reason]] of Object.entries(refusals)) {
  test(`not signed: ${name}`, async () => {
    const { wallet, sent } = walletOf({ accounts: [caseOf('permit2: good').signer], ...setup })
    await assert.rejects(sign(wallet, transfer), (error) => error instanceof SendError && error.reason === reason)
    assert.deepEqual(sent, [])
  })
}

const domain = { name: 'Test Euro Coin', version: '2', chainId: 31337, verifyingContract: '0x0Ae627987397e9aaADEeea8D9B57E01C48c504FE' }
const owner = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const word = (hex) => hex.padStart(64, '0')
const [r, s, nonce] = ['11'.repeat(32), '22'.repeat(32), `00ab${'0f'.padStart(60, '0')}`]
const permit = {
  domain, primaryType: 'Permit', message: { owner, spender: '0x000000000022D473030F116dDEE9F6B43aC78BA3', value: '1000', nonce: '7', deadline: '1800000000' },
}
const cancel = { domain, primaryType: 'CancelAuthorization', message: { authorizer: owner, nonce: `0x${nonce}` } }
const permitted = word(owner.slice(2).toLowerCase()) + word('22d473030f116ddee9f6b43ac78ba3') + word('3e8') + word('6b49d200')
const ended = word(owner.slice(2).toLowerCase()) + nonce
for (const [name, [typedData, signature, data]] of Object.entries({
  'a permit': [permit, `${r}${s}1c`, `0xd505accf${permitted}${word('1c')}${r}${s}`],
  'a permit with yParity': [permit, `${r}${s}00`, `0xd505accf${permitted}${word('1b')}${r}${s}`],
  'the end of an authorization': [cancel, `${r}${s}1b`, `0x5a049a70${ended}${word('1b')}${r}${s}`],
  'the end of one by an account with code': [cancel, `${r}22`, `0xb7b72899${ended}${word('60')}${word('21')}${r}22${'00'.repeat(31)}`],
})) {
  test(`for the token: ${name}`, () => {
    assert.deepEqual(tokenCall(typedData, `0x${signature}`), { chainId: 31337, to: domain.verifyingContract, value: '0', data })
  })
}

test('a token takes no other signature', () => {
  assert.throws(() => tokenCall(permit, '0x11'), /a permit takes a signature of 65 bytes/)
  assert.throws(() => tokenCall({ ...permit, primaryType: 'TransferWithAuthorization' }, '0x11'), /TransferWithAuthorization is no typed data for the token/)
})

test('a wallet signs for the token', async () => {
  const { wallet } = walletOf({ accounts: [owner], signature: `0x${r}${s}1b` })
  const EIP712Domain = fields.map(([name, type]) => ({ name, type }))
  const types = { EIP712Domain, CancelAuthorization: [{ name: 'authorizer', type: 'address' }, { name: 'nonce', type: 'bytes32' }] }
  const call = await signForToken(wallet, { ...cancel, types })
  assert.equal(call.data, `0x5a049a70${ended}${word('1b')}${r}${s}`)
  await assert.rejects(signForToken(walletOf({ accounts: [token] }).wallet, { ...cancel, types }), (error) => error.reason === 'OTHER_ACCOUNT')
})

const clientOf = (report) => ({ transfers: { relay: async () => ({ tx: { chainId: 31337, to: settler, value: '0', data: '0x49927074' } }), report } })

test('any account sends the transaction of a signed intent, and reports it', async () => {
  const { wallet, sent } = walletOf()
  assert.deepEqual(await relay(wallet, { id: 'one' }, { client: clientOf(async (id, hash) => ({ id, hash })) }), { id: 'one', hash: hashOf(1) })
  assert.deepEqual(sent, [{ to: settler, value: '0x0', data: '0x49927074' }])
})

test('the hash of a relayed transaction that cannot be reported is not lost', async () => {
  const client = clientOf(async () => { throw new Error('offline') })
  await assert.rejects(relay(walletOf().wallet, { id: 'one' }, { client }), (error) => error instanceof ReportError && error.hash === hashOf(1))
})

test('a transaction that would revert is not sent', async () => {
  const { wallet, sent } = walletOf()
  const revert = async () => { throw Object.assign(new Error('execution reverted'), { code: 3, data: '0x756688fe' }) }
  const publicClient = createWalletClient({ transport: custom({ request: revert }, { retryCount: 0 }) })
  await assert.rejects(relay(wallet, { id: 'one' }, { client: clientOf(), publicClient }), { name: 'CallExecutionError' })
  assert.deepEqual(sent, [])
})

for (const [name, setup, reason] of [['on another chain', { chainId: '0x1' }, 'OTHER_CHAIN'], ['without an account', { accounts: [] }, 'OTHER_ACCOUNT']]) {
  test(`not relayed by a wallet ${name}`, async () => {
    const { wallet, sent } = walletOf(setup)
    await assert.rejects(relay(wallet, { id: 'one' }, { client: clientOf() }), (error) => error instanceof SendError && error.reason === reason)
    assert.deepEqual(sent, [])
  })
}
