// Package generators pins what deploy/check makes clients with from the OpenAPI document, to see that the document suits other people's
// generators: oapi-codegen and what its code imports in go.mod, orval and tsc in package-lock.json. The code is compiled and thrown away.
package generators

import _ "github.com/oapi-codegen/runtime" // the generated client imports it
