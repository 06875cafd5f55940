// Package typescript has the packed TypeScript client, so that the service can serve it.
//
// It is what `npm run package` makes, and is kept in the repository: a build of core needs no Node, and every build serves the same bytes.
// The tests of the client fail where it is not made of the sources beside it.
package typescript

import _ "embed"

// Package is the npm package @transfer-intents/client: a gzipped tar of compiled modules, types, README and licence.
//
//go:embed client.tgz
var Package []byte
