package tokenbucket_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs eight tests at a time, unless -parallel says otherwise: each mostly waits for its own Redis.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8")
	os.Exit(m.Run())
}
