// Writes the bodies that tests recorded into the bundled document, as examples: of each operation and event what was sent and answered,
// and of each other answer the errors whose codes its schema has.
import { readFileSync, writeFileSync } from 'node:fs'

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url)))
const file = process.argv[2]
const document = JSON.parse(readFileSync(file))
const recorded = { ...read('../testdata/examples.json'), ...read('../../auth/testdata/examples.json') }
const errorFiles = ['../testdata/errors.json', '../../apierror/testdata/errors.json', '../../../../gateway/edge/testdata/errors.json']
const requestId = document.components.headers.EchoedRequestId.example
const withRequestId = (bodies) => bodies && Object.fromEntries(Object.entries(bodies).map(([name, body]) => [name, { ...body, requestId }]))
const errors = [...new Set(errorFiles.flatMap(read).map((error) => JSON.stringify({ ...(error.body ?? error), requestId })))].map((text) => JSON.parse(text))

// schemaAt is the schema that a reference names.
const schemaAt = ($ref) => document.components.schemas[$ref.split('/').pop()]

// codes are the error codes that a schema allows, in its own properties and its alternatives.
const codes = ({ $ref, allOf = [], oneOf = [], properties }) => [
  ...($ref ? codes(schemaAt($ref)) : []),
  ...[...allOf, ...oneOf].flatMap(codes),
  ...narrowed(properties?.code ?? {}),
]

// narrowed are the codes of a member; one that may be any code narrows nothing.
const narrowed = ({ $ref, enum: several, const: one }) => {
  if ($ref) return $ref.endsWith('/ErrorCode') ? [] : narrowed(schemaAt($ref))
  return several ?? [one ?? []].flat()
}

// named gives each body its name as summary.
const named = (bodies) => Object.fromEntries(Object.entries(bodies).map(([name, value]) => [name, { summary: name, value }]))

const errorsOf = (schema) => {
  const allowed = new Set(codes(schema))
  const bodies = {}
  for (const body of errors.filter(({ code }) => allowed.has(code))) {
    const again = Object.keys(bodies).filter((name) => name.split(' ')[0] === body.code).length
    bodies[again ? `${body.code} ${again + 1}` : body.code] = body
  }
  return bodies
}

const addTo = (part, bodies) => {
  const media = part?.content?.['application/json']
  if (!media) return
  const examples = named(bodies ?? errorsOf(media.schema))
  if (Object.keys(examples).length) media.examples = examples
}

for (const response of Object.values(document.components.responses)) addTo(response)
for (const [path, item] of [...Object.entries(document.paths), ...Object.entries(document.webhooks)]) {
  for (const operation of Object.values(item).filter(({ responses }) => responses)) {
    const bodies = recorded[operation.operationId] ?? recorded[path] ?? {}
    addTo(operation.requestBody, bodies.request ?? {})
    for (const [status, response] of Object.entries(operation.responses)) addTo(response, status < 400 ? bodies[status] : withRequestId(bodies[status]))
  }
}
writeFileSync(file, JSON.stringify(document, null, 2) + '\n')
