package feeds_test

import (
	"testing"

	"intents.internal/core/store/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
