module intents.internal/deploy

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	golang.org/x/sync v0.24.0
	intents.internal/pkg v0.0.0
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/emersion/go-sasl v0.0.0-20241020182733-b788ff22d5a6 // indirect
	github.com/emersion/go-smtp v0.25.1 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace intents.internal/pkg => ../pkg
