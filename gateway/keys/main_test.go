package keys_test

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "5") // most of these tests wait for times; -parallel overrides it
	os.Exit(m.Run())
}
