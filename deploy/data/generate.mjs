// Writes chains.json and tokens.json beside this file from published npm packages.
//
//   npm i --prefix DIR viem@2.57.1 @hyperlane-xyz/registry@26.1.0 \
//     @uniswap/default-token-list@22.21.0 @uniswap/sdk-core@7.19.4
//   node deploy/data/generate.mjs DIR
//
// The same packages always give the same bytes. Whatever the packages leave open is decided in the tables below, each
// row with its reason; anything they do not cover stops the run before a file is written.

import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

// Raise it by the rules of the Token Lists schema: major when a token goes, minor when one comes, patch otherwise.
const VERSION = { major: 1, minor: 0, patch: 0 }

const PACKAGES = {
  'viem': '2.57.1',
  '@hyperlane-xyz/registry': '26.1.0',
  '@uniswap/default-token-list': '22.21.0',
  '@uniswap/sdk-core': '7.19.4',
}

// The environment is pinned here rather than read, because both packages flag testnets only and leave most mainnets
// without a flag: silence must never make a chain live. `publishedChain` checks every row against both packages.
const ENVIRONMENT = new Map([
  ...[1, 10, 56, 130, 137, 143, 196, 324, 480, 1868, 4217, 4663, 8453, 42161, 42220, 43114, 57073, 59144, 81457, 7777777]
    .map((id) => [id, 'live']),
  ...[97, 300, 1301, 1946, 10143, 43113, 59141, 80002, 84532, 421614, 763373, 11142220, 11155111, 11155420, 168587773,
    999999999].map((id) => [id, 'test']),
])

// Chains of the token list that are not shipped.
const LEFT_OUT = new Map([
  [3, 'Ropsten: closed, in neither viem nor Hyperlane'],
  [4, 'Rinkeby: closed, in neither viem nor Hyperlane'],
  [5, 'Goerli: closed, not in Hyperlane'],
  [42, 'Kovan: closed, and the id is now the LUKSO mainnet, so these rows would become false live tokens'],
  [80001, 'Polygon Mumbai: closed, not in Hyperlane'],
  [501000101, 'Solana: not an eip155 chain'],
])

// viem and Hyperlane name another native symbol; viem's is taken.
const NATIVE_SYMBOL = new Map([
  [97, { viem: 'tBNB', hyperlane: 'BNB', reason: 'BNB Chain itself calls its testnet coin tBNB' }],
  [4217, { viem: 'USD', hyperlane: 'pathUSD', reason: 'Tempo has no coin: USD is the unit fees are counted in' }],
  [11142220, { viem: 'S-CELO', hyperlane: 'CELO', reason: 'keeps the test coin apart from the real one' }],
])

// Chains whose transactions cannot carry a native value, so an ERC-7528 row would promise a transfer that must fail.
const NO_NATIVE_ASSET = new Set([4217])

// Wrapped coins of testnets that none of the packages publish.
const CONFIRMED = [
  // https://docs.chain.link/ccip/directory/testnet/chain/bsc-testnet (fee tokens), also in PancakeSwap's SDK
  { chainId: 97, address: '0xae13d989daC2f0dEbFf460aC112a837C89BAa7cd', name: 'Wrapped BNB', symbol: 'WBNB', decimals: 18 },
  // the wrapped coin of the Pangolin V2 router on Fuji
  { chainId: 43113, address: '0xd00ae08403B9bbb9124bB305C09058E32C39A48c', name: 'Wrapped AVAX', symbol: 'WAVAX', decimals: 18 },
]

// https://eips.ethereum.org/EIPS/eip-7528
const NATIVE_ADDRESS = '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE'

async function loadSources(directory) {
  const root = resolve(directory, 'node_modules')
  for (const [name, pinned] of Object.entries(PACKAGES)) {
    const { version } = JSON.parse(readFileSync(join(root, name, 'package.json'), 'utf8'))
    if (version !== pinned) throw new Error(`${name} is ${version}, this generator was checked against ${pinned}`)
  }
  const require = createRequire(join(root, 'any.js'))
  // By path, because the package's main module needs packages that it does not install.
  const hyperlane = await import(pathToFileURL(join(root, '@hyperlane-xyz/registry/dist/chainMetadata.js')))
  return {
    getAddress: require('viem').getAddress,
    viemChains: Object.values(require('viem/chains')).filter((value) => Number.isInteger(value?.id)),
    viemTokens: Object.values(require('viem/tokens')).filter((value) => value.addresses),
    hyperlaneChains: Object.values(hyperlane.chainMetadata).filter((chain) => chain.protocol === 'ethereum'),
    tokenList: require('@uniswap/default-token-list/build/uniswap-default.tokenlist.json'),
    wrappedCoins: Object.values(require('@uniswap/sdk-core').WETH9),
  }
}

// The chain as both packages publish it. They must agree with each other and with the tables above.
function publishedChain(chainId, { viemChains, hyperlaneChains }) {
  const fail = (what) => { throw new Error(`chain ${chainId}: ${what}`) }

  // viem exports some chains under several names; two different chains under one id are not for us to choose from.
  const aliases = viemChains.filter((chain) => chain.id === chainId)
  const shapes = new Set(aliases.map(({ name, testnet, nativeCurrency: { symbol, decimals } }) =>
    JSON.stringify([name, testnet === true, symbol, decimals])))
  if (shapes.size !== 1) fail(`viem has ${shapes.size} definitions`)
  const [viem] = aliases
  const matches = hyperlaneChains.filter((chain) => chain.chainId === chainId)
  if (matches.length !== 1) fail(`Hyperlane has ${matches.length} definitions`)
  const [hyperlane] = matches

  const environment = ENVIRONMENT.get(chainId)
  const isTest = environment === 'test'
  for (const [source, flag] of [['viem', viem.testnet], ['Hyperlane', hyperlane.isTestnet]]) {
    if ((flag === true) !== isTest) fail(`pinned as ${environment}, but the test flag of ${source} is ${flag}`)
  }

  const { name, symbol, decimals } = viem.nativeCurrency
  const native = hyperlane.nativeToken
  if (decimals !== native.decimals) fail(`native decimals: viem ${decimals}, Hyperlane ${native.decimals}`)
  const decided = NATIVE_SYMBOL.get(chainId) ?? { viem: symbol, hyperlane: symbol }
  if (symbol !== decided.viem || native.symbol !== decided.hyperlane) {
    fail(`native symbol: viem ${symbol}, Hyperlane ${native.symbol}`)
  }

  const domain = hyperlane.domainId
  if (!Number.isInteger(domain) || domain < 1 || domain > 0xffffffff) fail(`domain ${domain} is not a uint32`)
  return { chainId: `eip155:${chainId}`, name: viem.name, environment, nativeCurrency: { name, symbol, decimals }, domain }
}

// Every published token of a shipped chain by source, in the order in which `mergeTokens` prefers them.
function publishedTokens(chains, { viemTokens, tokenList, wrappedCoins }) {
  for (const { chainId } of tokenList.tokens) {
    const decided = ENVIRONMENT.has(chainId) || LEFT_OUT.has(chainId)
    if (!decided) throw new Error(`token list: nothing decided for chain ${chainId}`)
  }
  const native = [...chains].filter(([chainId]) => !NO_NATIVE_ASSET.has(chainId))
    .map(([chainId, { nativeCurrency }]) => ({ chainId, address: NATIVE_ADDRESS, ...nativeCurrency }))
  const sources = {
    'native assets': native,
    '@uniswap/default-token-list': tokenList.tokens,
    'viem/tokens': viemTokens.flatMap(({ addresses, name, symbol, decimals }) => Object.entries(addresses)
      .map(([chainId, address]) => ({ chainId: Number(chainId), address, name, symbol, decimals }))),
    '@uniswap/sdk-core': wrappedCoins,
    'confirmed by hand': CONFIRMED,
  }
  return Object.entries(sources).map(([source, rows]) => [source, rows.filter((row) => chains.has(row.chainId))])
}

// The row in the Token Lists shape. `extensions` is dropped: it holds bridge hints only, which nothing here reads.
function tokenRow({ chainId, address, name, symbol, decimals, logoURI }, getAddress) {
  const where = `token ${chainId}:${address}`
  const checksummed = getAddress(address)
  // viem does not compare the case it is given; a wrong mixed case is a typing mistake somewhere, so it is not repaired.
  if (address !== checksummed && address !== address.toLowerCase()) throw new Error(`${where}: wrong EIP-55 checksum`)
  if (!/^\S{1,20}$/.test(symbol)) throw new Error(`${where}: symbol ${JSON.stringify(symbol)}`)
  if (!name || name.length > 60) throw new Error(`${where}: name ${JSON.stringify(name)}`)
  if (!Number.isInteger(decimals) || decimals < 0 || decimals > 255) throw new Error(`${where}: decimals ${decimals}`)
  return { chainId, address: checksummed, name: name.trim(), symbol, decimals, ...(logoURI && { logoURI }) }
}

// The first source to name an address describes it; a later one may add nothing, but must not contradict its decimals.
function mergeTokens(sources, getAddress) {
  const tokens = new Map()
  for (const [source, rows] of sources) {
    let added = 0
    for (const row of rows.map((raw) => tokenRow(raw, getAddress))) {
      const key = `${row.chainId}:${row.address}`
      const known = tokens.get(key)
      if (known && known.decimals !== row.decimals) {
        throw new Error(`token ${key}: ${source} has decimals ${row.decimals}, not ${known.decimals}`)
      }
      if (known) continue
      tokens.set(key, row)
      added += 1
    }
    console.log(`${source}: ${rows.length} rows on shipped chains, ${added} added`)
  }
  return [...tokens.values()].sort((a, b) =>
    a.chainId - b.chainId || (a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1))
}

// One row a line, so that a diff shows one chain or token a line.
function render(head, key, rows) {
  const fields = Object.entries(head).map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`)
  const lines = rows.map((row) => `    ${JSON.stringify(row)}`)
  return `{\n${fields.join('')}  ${JSON.stringify(key)}: [\n${lines.join(',\n')}\n  ]\n}\n`
}

const [directory] = process.argv.slice(2)
if (!directory) throw new Error('usage: node deploy/data/generate.mjs DIR, where DIR/node_modules holds the packages')
const sources = await loadSources(directory)

const ids = [...ENVIRONMENT.keys()].sort((a, b) => a - b)
const chains = new Map(ids.map((id) => [id, publishedChain(id, sources)]))
const tokens = mergeTokens(publishedTokens(chains, sources), sources.getAddress)
for (const [chainId, reason] of LEFT_OUT) {
  const count = sources.tokenList.tokens.filter((token) => token.chainId === chainId).length
  console.log(`left out: ${count} tokens of chain ${chainId} (${reason})`)
}
console.log(`${chains.size} chains, ${tokens.length} tokens`)

const write = (file, ...content) => writeFileSync(new URL(file, import.meta.url), render(...content))
const version = Object.values(VERSION).join('.')
// The upstream list's time, not now: a second run must give the same bytes.
const { timestamp } = sources.tokenList
write('chains.json', { name: 'Default chains', version }, 'chains', [...chains.values()])
write('tokens.json', { name: 'Default tokens', timestamp, version: VERSION }, 'tokens', tokens)
