// Compiles src/*.sol into out/*.json: of each contract its ABI, one member a line, and its bytecode. Core's go to core/identity.
//
//   npm ci --prefix deploy/chains/contracts --ignore-scripts
//   node deploy/chains/contracts/build.mjs                     writes out/
//   node deploy/chains/contracts/build.mjs --check [PROJECT]   writes nothing, exit status 1 if out/ differs
//
// PROJECT holds node_modules, by default this file's own directory. The compiler is the solc of package-lock.json, which
// is JavaScript, and the bytecode has no metadata, so every machine writes the same bytes.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const check = process.argv[2] === '--check'
const project = (check && process.argv[3]) || here
const solc = createRequire(resolve(project, 'package.json'))('solc')

function compile() {
  const names = readdirSync(join(here, 'src')).filter((name) => name.endsWith('.sol'))
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(names.map((name) => [name, { content: readFileSync(join(here, 'src', name), 'utf8') }])),
    settings: {
      evmVersion: 'paris', // runs on all chains; later versions need PUSH0, which some chains lack
      optimizer: { enabled: true, runs: 200 },
      metadata: { appendCBOR: false },
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
    },
  }
  const output = JSON.parse(solc.compile(JSON.stringify(input)))
  const messages = (output.errors ?? []).map((message) => message.formattedMessage)
  if (messages.length > 0) throw new Error(messages.join('\n')) // warnings too
  return output.contracts
}

// artifacts returns the texts of out/ by file name. Interfaces have no bytecode and no file.
function artifacts() {
  const texts = {}
  for (const [name, { abi, evm }] of Object.values(compile()).flatMap(Object.entries)) {
    if (evm.bytecode.object === '') continue
    const members = abi.map((member) => `    ${JSON.stringify(member)}`).join(',\n')
    texts[`${name}.json`] = `{
  "compiler": ${JSON.stringify(solc.version())},
  "abi": [
${members}
  ],
  "bytecode": "0x${evm.bytecode.object}"
}
`
  }
  return texts
}

const out = join(here, 'out')
// Core embeds the one contract that it uses, and Go embeds nothing from outside of a module.
const embedded = { 'SignatureValidator.json': join(here, '../../../core/signature/validator.json') }
const texts = artifacts()
const files = Object.fromEntries(Object.keys(texts).map((name) => [embedded[name] ?? join(out, name), texts[name]]))
if (check) {
  const present = existsSync(out) ? readdirSync(out).map((name) => join(out, name)) : []
  for (const path of new Set([...present, ...Object.keys(files)])) {
    if (existsSync(path) && readFileSync(path, 'utf8') === files[path]) continue
    console.log(`${relative(join(here, '../../..'), path)} differs from what src/ compiles to; build.mjs writes it again`)
    process.exitCode = 1
  }
} else {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out)
  for (const [path, text] of Object.entries(files)) writeFileSync(path, text)
}
