// Writes chains.json, tokens.json and NOTICE from published npm packages.
//
//   npm ci --prefix deploy/data --ignore-scripts
//   node deploy/data/generate.mjs deploy/data [OUT]
//
// The first argument holds node_modules; OUT is the directory to write to, this file's own by default. The same packages
// give the same bytes. What the packages leave open is decided in the tables below, each row with its reason; anything
// else stops the run before a file is written.

import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

// The rules of the Token Lists schema: major when a token goes, minor when one comes, patch otherwise.
const VERSION = { major: 2, minor: 0, patch: 3 }

// integrity is the hash that npm checks a package against. licenseFile is null where the package declares its licence in
// package.json and ships no text.
const PACKAGES = {
  'viem': {
    version: '2.57.1', license: 'MIT', licenseFile: 'LICENSE',
    integrity: 'sha512-eOV3fHnaMzkIFRefZg1icWztAKvBHg7RMKEH89ywY7hnyq1VxI4s/osXnTBViOsEZ7/LbbxU3w+JaIrbeIXRPQ==',
  },
  '@hyperlane-xyz/registry': {
    version: '26.1.0', license: 'MIT', licenseFile: 'LICENSE.md',
    integrity: 'sha512-zk433OpCZcMPsK3r0qG0MqalHYxycp8ydOokpGlQParhnBUO4KukA0K0Nku3HhPIv8Qt8Y45oMpTc6+00svnqg==',
  },
  '@eth-optimism/tokenlist': {
    version: '10.0.1770', license: 'MIT', licenseFile: null,
    integrity: 'sha512-IU6oOLdbMVdCkIgO4X6oZnddLONozCjFHkt6UfDaxrt1v7RqqC3lkjiQJxYMXV66BOhGomggx4MO5tCjtpzcUA==',
  },
  '@bgd-labs/aave-address-book': {
    version: '4.44.22', license: 'MIT', licenseFile: 'LICENSE',
    integrity: 'sha512-25dt74TdSJxpCu++QbfRcsSlXZJ2HnktkzekVa0n97X/wNDmJx49GxzZLQI3wIAvSsY/iNRGwBMsHq/LTc1qUg==',
  },
  '@uniswap/sdk-core': {
    version: '7.19.4', license: 'MIT', licenseFile: 'LICENSE',
    integrity: 'sha512-jV9qVMMD6qvEATgfFnZ3QgrhIMv5lullzeGPWjyC4+sUctatft+1M+OtAZxxjbFm8NQfJA73hqIeFPOg4cUyoA==',
  },
}
const sourceName = (name) => `${name}@${PACKAGES[name].version}`

// The environment is pinned here rather than read, because both packages flag testnets only and leave most mainnets
// without a flag: silence must never make a chain live. `publishedChain` checks every row against both packages.
const ENVIRONMENT = new Map([
  ...[1, 10, 56, 130, 137, 143, 196, 324, 480, 1868, 4217, 4663, 8453, 42161, 42220, 43114, 57073, 59144, 81457, 7777777]
    .map((id) => [id, 'live']),
  ...[97, 300, 1301, 1946, 10143, 43113, 59141, 80002, 84532, 421614, 763373, 11142220, 11155111, 11155420, 168587773,
    999999999].map((id) => [id, 'test']),
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

// How deep a block must be where a chain's row says nothing: DefaultConfirmations of core/registry.
const DEFAULT_CONFIRMATIONS = 12

// The rows of CONFIRMED are this project's own statements, under its own licence.
const BY_HAND = 'confirmed by hand'
const LICENSES = {
  [BY_HAND]: 'MIT',
  ...Object.fromEntries(Object.entries(PACKAGES).map(([name, { license }]) => [sourceName(name), license])),
}

// Circle's USDC, by chain and address: the name in the EIP-712 domain of its authorizations (ERC-3009) and permits (EIP-2612), whose version is 2. The
// name differs by chain and is the contract's name(). `core tokens check` compares both with the contract.
const USDC_DOMAINS = {
  '1:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48': 'USD Coin',
  '10:0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85': 'USD Coin',
  '137:0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359': 'USD Coin',
  '143:0x754704Bc059F8C67012fEd69BC8A327a5aafb603': 'USD Coin',
  '8453:0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913': 'USD Coin',
  '42161:0xaf88d065e77c8cC2239327C5EDb3A432268e5831': 'USD Coin',
  '84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e': 'USDC',
  '421614:0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d': 'USD Coin',
  '11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238': 'USDC',
  '11155420:0x5fd84259d66Cd46123540766Be93DFE6D43130D7': 'USDC',
}

// https://eips.ethereum.org/EIPS/eip-7528
const NATIVE_ADDRESS = '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE'
// What the Superchain list writes for the native asset: no contract, and the predeploy that OP Mainnet gave up in 2021.
const OTHER_NATIVE_ADDRESSES = new Set([
  '0x0000000000000000000000000000000000000000', '0xDeadDeAddeAddEAddeadDEaDDEAdDeaDDeAD0000',
])

function checkPackages(root) {
  const installed = JSON.parse(readFileSync(join(root, '.package-lock.json'), 'utf8')).packages
  for (const [name, { version, integrity, license }] of Object.entries(PACKAGES)) {
    const found = installed[`node_modules/${name}`]
    const declared = JSON.parse(readFileSync(join(root, name, 'package.json'), 'utf8'))
    if (declared.version !== version || found?.integrity !== integrity || declared.license !== license) {
      throw new Error(`${name} is ${declared.version} (${declared.license}, ${found?.integrity}), ` +
        `this generator was checked against ${version} (${license}, ${integrity})`)
    }
  }
}

async function loadSources(root) {
  const require = createRequire(join(root, 'any.js'))
  // By path, because the package's main module needs packages that it does not install.
  const hyperlane = await import(pathToFileURL(join(root, '@hyperlane-xyz/registry/dist/chainMetadata.js')))
  return {
    getAddress: require('viem').getAddress,
    viemChains: Object.values(require('viem/chains')).filter((value) => Number.isInteger(value?.id)),
    viemTokens: Object.values(require('viem/tokens')).filter((value) => value.addresses),
    hyperlaneChains: Object.values(hyperlane.chainMetadata).filter((chain) => chain.protocol === 'ethereum'),
    superchainList: require('@eth-optimism/tokenlist').default,
    aaveList: JSON.parse(readFileSync(join(root, '@bgd-labs/aave-address-book/tokenlist.json'), 'utf8')),
    wrappedCoins: Object.values(require('@uniswap/sdk-core').WETH9),
  }
}

// The chain as both packages publish it. They must agree with each other and with the tables above.
function publishedChain(chainId, { viemChains, hyperlaneChains }) {
  const fail = (what) => { throw new Error(`chain ${chainId}: ${what}`) }

  // viem exports some chains under several names; two different chains under one id are not for us to choose from.
  const aliases = viemChains.filter((chain) => chain.id === chainId)
  const shapes = new Set(aliases.map(({ name, testnet, nativeCurrency: { symbol, decimals }, blockTime, blockExplorers }) =>
    JSON.stringify([name, testnet === true, symbol, decimals, blockTime, blockExplorers?.default.url])))
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

  return {
    chainId: `eip155:${chainId}`, name: viem.name, environment, nativeCurrency: { name, symbol, decimals },
    ...publishedFinality(hyperlane, fail), ...publishedBlockTime(viem, fail),
    ...publishedExplorer(viem, fail),
  }
}

// Hyperlane's reorgPeriod is a block tag, or how many blocks must follow one. Fewer than the default's are not taken: on a roll-up
// they mean that its sequencer is trusted.
function publishedFinality({ blocks }, fail) {
  const reorgPeriod = blocks?.reorgPeriod ?? 0
  if (reorgPeriod === 'safe' || reorgPeriod === 'finalized') return { finality: reorgPeriod }
  if (!Number.isInteger(reorgPeriod) || reorgPeriod < 0 || reorgPeriod >= 10000) fail(`reorgPeriod ${reorgPeriod}`)
  const confirmations = reorgPeriod + 1 // the block itself counts
  return confirmations > DEFAULT_CONFIRMATIONS ? { confirmations } : {}
}

function publishedBlockTime({ blockTime }, fail) {
  if (blockTime === undefined) return {}
  if (!Number.isInteger(blockTime) || blockTime < 50 || blockTime > 600000) fail(`blockTime ${blockTime}`)
  return { blockTimeMs: blockTime }
}

// The URL's paths are those of EIP-3091: viem's users make links of it in the same way.
function publishedExplorer({ blockExplorers }, fail) {
  if (blockExplorers === undefined) return {}
  const explorer = blockExplorers.default.url.replace(/\/$/, '')
  if (!/^https:\/\/[a-z0-9.-]+(\/[a-z0-9/-]+)?$/.test(explorer)) fail(`explorer ${explorer}`)
  return { explorer }
}

// Every published token of a shipped chain by source, in the order in which `mergeTokens` prefers them.
function publishedTokens(chains, { viemTokens, superchainList, aaveList, wrappedCoins }) {
  const native = [...chains].filter(([chainId]) => !NO_NATIVE_ASSET.has(chainId))
    .map(([chainId, { nativeCurrency }]) => ({ chainId, address: NATIVE_ADDRESS, ...nativeCurrency }))
  const stablecoins = viemTokens.flatMap(({ addresses, name, symbol, decimals }) => Object.entries(addresses)
    .map(([chainId, address]) => ({ chainId: Number(chainId), address, name, symbol, decimals })))
  // The other tags are Aave's own receipts. The rows of one symbol on one chain are shares of pools (UNI-V2, BPT, G-UNI).
  const underlying = aaveList.tokens.filter(({ tags }) => tags.join() === 'underlying')
  const symbols = countBy(underlying, symbolKey)
  return [
    [sourceName('viem'), native],
    [sourceName('@eth-optimism/tokenlist'), superchainList.tokens.filter(({ address }) => !OTHER_NATIVE_ADDRESSES.has(address))],
    [sourceName('viem'), stablecoins],
    [sourceName('@bgd-labs/aave-address-book'), underlying.filter((row) => symbols.get(symbolKey(row)) === 1)],
    [sourceName('@uniswap/sdk-core'), wrappedCoins],
    [BY_HAND, CONFIRMED],
  ].map(([source, rows]) => [source, rows.filter((row) => chains.has(row.chainId))])
}

const symbolKey = ({ chainId, symbol }) => `${chainId} ${symbol.toUpperCase()}`

function countBy(rows, key) {
  const counts = new Map()
  for (const row of rows) counts.set(key(row), (counts.get(key(row)) ?? 0) + 1)
  return counts
}

// The row in the Token Lists shape. The source's own extensions hold bridge hints, which nothing here reads.
function tokenRow({ chainId, address, name, symbol, decimals, logoURI }, source, getAddress) {
  const where = `token ${chainId}:${address}`
  const checksummed = getAddress(address)
  // viem does not compare the case it is given; a wrong mixed case is a typing mistake somewhere, so it is not repaired.
  if (address !== checksummed && address !== address.toLowerCase()) throw new Error(`${where}: wrong EIP-55 checksum`)
  if (!/^\S{1,20}$/.test(symbol)) throw new Error(`${where}: symbol ${JSON.stringify(symbol)}`)
  if (!name || name.length > 60) throw new Error(`${where}: name ${JSON.stringify(name)}`)
  if (!Number.isInteger(decimals) || decimals < 0 || decimals > 255) throw new Error(`${where}: decimals ${decimals}`)
  const extensions = { source, license: LICENSES[source] }
  return { chainId, address: checksummed, name: name.trim(), symbol, decimals, ...(logoURI && { logoURI }), extensions }
}

// One token an address. Two sources that differ in its decimals drop it, because a wrong guess misstates every amount;
// where they differ in its symbol or name the earlier source is taken. A later source's row whose symbol an earlier
// source gives to another contract of the chain is dropped, because the sources disagree on which one has the symbol.
function mergeTokens(sources, getAddress) {
  const tokens = new Map()
  const symbols = new Map() // the source and row that brought a symbol, native assets aside
  const contradicted = new Set()
  for (const [source, rows] of sources) {
    for (const row of rows.map((raw) => tokenRow(raw, source, getAddress))) {
      const key = `${row.chainId}:${row.address}`
      const known = tokens.get(key)
      if (contradicted.has(key)) continue
      if (known && known.decimals !== row.decimals) {
        console.log(`dropped ${key}: decimals ${known.decimals} (${known.extensions.source}), ${row.decimals} (${source})`)
        contradicted.add(key)
        tokens.delete(key)
        continue
      }
      if (known) {
        if (known.symbol !== row.symbol) {
          console.log(`kept ${key} as ${known.symbol} (${known.extensions.source}), not ${row.symbol} (${source})`)
        }
        continue
      }
      const namesake = symbols.get(symbolKey(row))
      if (namesake && namesake.extensions.source !== source) {
        console.log(`dropped ${key} (${source}): ${row.symbol} is ${namesake.address} (${namesake.extensions.source})`)
        continue
      }
      tokens.set(key, row)
      if (row.address !== NATIVE_ADDRESS && !namesake) symbols.set(symbolKey(row), row)
    }
  }
  return [...tokens.values()].sort((a, b) =>
    a.chainId - b.chainId || (a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1))
}

// addDomains adds what signatures of USDC's holders are made with.
function addDomains(tokens) {
  const domains = new Map(Object.entries(USDC_DOMAINS))
  const rows = tokens.map(({ extensions, ...row }) => {
    const key = `${row.chainId}:${row.address}`
    const domain = domains.has(key) && { name: domains.get(key), version: '2' }
    domains.delete(key)
    return { ...row, ...(domain && { erc3009: domain, eip2612: domain }), extensions }
  })
  if (domains.size > 0) throw new Error(`no source has ${[...domains.keys()].join(', ')}`)
  return rows
}

// What the list says of its sources.
function describeSources(names, rows) {
  const counts = rows && countBy(rows, (row) => row.extensions.source)
  return names.map((name) => {
    const source = PACKAGES[name] ? sourceName(name) : name
    const integrity = PACKAGES[name]?.integrity
    const rowCount = counts?.get(source)
    return { source, license: LICENSES[source], ...(integrity && { integrity }), ...(rowCount && { rows: rowCount }) }
  })
}

// The notices that the licences ask to keep with copies of the data.
function notice(root) {
  const read = (name, file) => readFileSync(join(root, name, file), 'utf8').replace(/\r\n/g, '\n').trim()
  const terms = read('viem', 'LICENSE').replace(/^.*?(?=Permission is hereby granted)/s, '')
  const parts = Object.entries(PACKAGES).map(([name, { license, licenseFile }]) => {
    const { author } = JSON.parse(read(name, 'package.json'))
    const text = licenseFile ? read(name, licenseFile)
      : `Author: ${author}. The package declares the licence ${license} in package.json and\n` +
        `ships neither its text nor a copyright line. The terms of the MIT License are:\n\n${terms}`
    return `${'='.repeat(80)}\n${sourceName(name)} (${license})\n\n${text}\n`
  })
  return 'chains.json, tokens.json and the rows of chains in settlements-lifi-*.json hold data of these packages, under\n' +
    `the licences that follow.\n\n${parts.join('\n')}`
}

// One row a line, so that a diff shows one chain or token a line.
function render(head, key, rows) {
  const list = (items) => `[\n${items.map((item) => `    ${JSON.stringify(item)}`).join(',\n')}\n  ]`
  const fields = Object.entries({ ...head, [key]: rows })
    .map(([name, value]) => `  ${JSON.stringify(name)}: ${Array.isArray(value) ? list(value) : JSON.stringify(value)}`)
  return `{\n${fields.join(',\n')}\n}\n`
}

const [directory, out = fileURLToPath(new URL('.', import.meta.url))] = process.argv.slice(2)
if (!directory) throw new Error('usage: node deploy/data/generate.mjs DIR [OUT], where DIR/node_modules holds the packages')
const root = resolve(directory, 'node_modules')
checkPackages(root)
const sources = await loadSources(root)

const ids = [...ENVIRONMENT.keys()].sort((a, b) => a - b)
const chains = new Map(ids.map((id) => [id, publishedChain(id, sources)]))
const tokens = addDomains(mergeTokens(publishedTokens(chains, sources), sources.getAddress))
console.log(`${chains.size} chains, ${tokens.length} tokens`)

const write = (file, text) => writeFileSync(join(out, file), text)
const chainSources = describeSources(['viem', '@hyperlane-xyz/registry'])
const tokenSources = describeSources(
  ['viem', '@eth-optimism/tokenlist', '@bgd-labs/aave-address-book', '@uniswap/sdk-core', BY_HAND], tokens)
for (const { source, rows } of tokenSources) console.log(`${source}: ${rows} tokens`)
const version = Object.values(VERSION).join('.')
// The largest source's time, not now: a second run must give the same bytes.
const { timestamp } = sources.superchainList
write('chains.json', render({ name: 'Default chains', version, sources: chainSources }, 'chains', [...chains.values()]))
write('tokens.json', render({ name: 'Default tokens', timestamp, version: VERSION, sources: tokenSources }, 'tokens', tokens))
write('NOTICE', notice(root))
