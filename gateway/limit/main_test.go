package limit_test

import (
	"os"
	"testing"

	"intents.internal/pkg/parallel"
)

// atOnce is how many tests run at the same time: they wait for servers to find each other, and to miss each other.
const atOnce = "5"

func TestMain(m *testing.M) {
	parallel.Tests(atOnce)
	os.Exit(m.Run())
}
