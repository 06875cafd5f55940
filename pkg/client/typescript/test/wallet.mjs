// A wallet for the tests of what is sent with one.
import assert from 'node:assert/strict'
import { createWalletClient, custom, encodeFunctionData, erc20Abi, pad, toHex } from 'viem'

export const [from, token, settler] = ['a', 'b', 'c'].map((digit) => `0x${digit.repeat(40)}`)
export const approval = (amount) => ({ to: token, value: '0', data: encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [settler, amount] }) })
export const hashOf = (n) => pad(toHex(n), { size: 32 })

/**
 * A wallet over an EIP-1193 provider that notes what it is asked to send. It mines at once. `batch` is what it says of calls that it has taken, and
 * `refused` the code by which it takes none; each may be a function of the request. `signature` is what it signs with.
 */
export function walletOf({ allowance = 0n, chainId = '0x7a69', accounts = [from], atomic, status = '0x1', batch = { status: 200, receipts: 1 }, refused, account, signature } = {}) {
  const sent = []
  const receipt = (hash) => ({ transactionHash: hash, blockNumber: '0x1', blockHash: hashOf(99), status, logs: [], gasUsed: '0x1', type: '0x2', from, to: token, transactionIndex: '0x0', cumulativeGasUsed: '0x1', effectiveGasPrice: '0x1', logsBloom: '0x', contractAddress: null })
  const methods = {
    eth_chainId: () => chainId,
    eth_accounts: () => accounts,
    eth_call: () => pad(toHex(allowance), { size: 32 }),
    eth_blockNumber: () => '0x2',
    eth_getTransactionReceipt: ([hash]) => receipt(hash),
    eth_getTransactionByHash: ([hash]) => ({ hash, from, nonce: '0x0', blockNumber: '0x1', blockHash: hashOf(99), value: '0x0', input: '0x', gas: '0x1', type: '0x2', transactionIndex: '0x0' }),
    eth_sendTransaction: ([{ to, value, data }]) => hashOf(sent.push({ to, value: value ?? '0x0', data })),
    eth_signTypedData_v4: ([signer, typedData]) => {
      const count = sent.push({ signer, ...JSON.parse(typedData) })
      return signature ?? `0x${count}`
    },
    wallet_getCapabilities: () => {
      if (!atomic) throw Object.assign(new Error('no such method'), { code: -32601 })
      return { '0x7a69': { atomic: { status: atomic } } }
    },
    wallet_sendCalls: ([request]) => {
      const code = typeof refused === 'function' ? refused(request) : refused
      if (code) throw Object.assign(new Error('refused'), { code })
      return { id: `0x0${sent.push(request)}` }
    },
    wallet_getCallsStatus: ([id]) => {
      const { code, receipts, reverted = [], status } = typeof batch === 'function' ? batch(sent[Number(id) - 1]) : batch
      if (code) throw Object.assign(new Error('no status'), { code })
      const last = 42 * Number(id) // the hash of the last receipt
      const all = receipts === undefined ? undefined : Array.from({ length: receipts }, (_, n) =>
        ({ ...receipt(hashOf(last + 1 + n - receipts)), ...(reverted.includes(n) && { status: '0x0' }) }))
      return { version: '2.0.0', id, chainId, status, atomic: receipts === 1, receipts: all }
    },
  }
  const request = async ({ method, params }) => (methods[method] ?? assert.fail(`asked for ${method}`))(params)
  return { wallet: createWalletClient({ account, transport: custom({ request }, { retryCount: 0 }), pollingInterval: 10 }), sent }
}
