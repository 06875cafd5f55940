package conn_test

import (
	"testing"

	"intents.internal/gateway/conn"
)

func TestLimiter_CapByOpenFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ conns, perAddress, files, most, each int }{
		{65536, 16384, 1 << 20, 65536, 16384},
		{65536, 16384, 20000, 15000, 3750},
		{65536, 0, 1024, 768, 0},
		{100, 1, 20, 15, 1},
		{1, 1, 1, 1, 1},
	} {
		if most, each := conn.CapByOpenFiles(test.conns, test.perAddress, test.files); most != test.most || each != test.each {
			t.Errorf("%+v: %d and %d", test, most, each)
		}
	}
}
