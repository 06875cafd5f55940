// Reads API records, a JSON array, from standard input and computes each one's order data, order id and calls with
// viem, from the named fields of `order` alone. Fails at the first difference; prints what it has agreed on.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import {
  createWalletClient, custom, encodeAbiParameters, encodeFunctionData, getAddress, keccak256, parseAbi, parseAbiParameters, slice, toHex,
  zeroHash,
} from 'viem'

const fields =
  'bytes32 sender,bytes32 recipient,bytes32 inputToken,bytes32 outputToken,uint256 amountIn,uint256 amountOut,' +
  'uint256 senderNonce,uint32 originDomain,uint32 destinationDomain,bytes32 destinationSettler,uint32 fillDeadline,bytes data'
const orderData = parseAbiParameters(['OrderData order', `struct OrderData { ${fields.replaceAll(',', '; ')}; }`])
const orderDataType = keccak256(toHex(`OrderData(${fields})`))
const abi = parseAbi([
  'function transfer(address to, uint256 amount)',
  'function approve(address spender, uint256 amount)',
  'function open(OnchainCrossChainOrder order)',
  'struct OnchainCrossChainOrder { uint32 fillDeadline; bytes32 orderDataType; bytes orderData; }',
])

const address = (word) => {
  assert.equal(slice(word, 0, 12), '0x000000000000000000000000')
  return getAddress(slice(word, 12))
}
const call = (to, functionName, ...args) => ({ to, value: '0', data: encodeFunctionData({ abi, functionName, args }) })

// The transaction of an order: the plain one of the asset where there is no settler, else the opening of the order.
function transaction(order, encoded, token) {
  const native = order.inputToken === zeroHash
  if (order.originSettler === null) {
    const to = address(order.recipient)
    return native
      ? { to, value: order.amountIn, data: '0x', allowances: [] }
      : { ...call(address(order.inputToken), 'transfer', to, BigInt(order.amountIn)), allowances: [] }
  }
  const open = call(order.originSettler, 'open', { fillDeadline: order.fillDeadline, orderDataType, orderData: encoded })
  if (native) return { ...open, value: order.amountIn, allowances: [] }
  const approve = call(address(order.inputToken), 'approve', order.originSettler, BigInt(order.amountIn))
  const allowance = { token, owner: address(order.sender), spender: order.originSettler, amount: order.amountIn, approve }
  return { ...open, allowances: [allowance] }
}

// What viem asks of a wallet that executes the allowances and the transaction as a batch (EIP-5792). viem leaves a value of zero out.
async function sendCalls({ chainId, from, to, value, data, allowances }) {
  let asked
  const wallet = createWalletClient({
    chain: { id: chainId }, account: from,
    transport: custom({ request: async ({ method, params }) => { asked = { method, params }; return { id: '0x1' } } }),
  })
  const calls = [...allowances.map(({ approve }) => approve), { to, value, data }]
  await wallet.sendCalls({ calls: calls.map((one) => ({ ...one, value: BigInt(one.value) })) })
  assert.equal(asked.method, 'wallet_sendCalls')
  const [parameters] = JSON.parse(JSON.stringify(asked.params))
  return { ...parameters, calls: parameters.calls.map((one) => ({ value: '0x0', ...one })) }
}

for (const record of JSON.parse(readFileSync(0, 'utf8'))) {
  const { order, tx, id } = record
  const numbers = { amountIn: BigInt(order.amountIn), amountOut: BigInt(order.amountOut), senderNonce: BigInt(order.senderNonce) }
  const encoded = encodeAbiParameters(orderData, [{ ...order, ...numbers }])
  assert.equal(order.orderData, encoded, `orderData of ${id}`)
  assert.equal(record.orderId, keccak256(encoded), `orderId of ${id}`)
  assert.equal(numbers.senderNonce, BigInt(`0x${id.replaceAll('-', '')}`), `senderNonce of ${id}`)

  const chainId = Number(record.metadata.chainId.split(':')[1])
  const want = { chainId, from: address(order.sender), ...transaction(order, encoded, record.source.token) }
  assert.deepEqual(tx, { ...want, calls: await sendCalls(want) }, `tx of ${id}`)
  console.log(`${record.type} ${order.inputToken === zeroHash ? 'native' : 'ERC-20'}`)
}
