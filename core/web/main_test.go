package web_test

import (
	"testing"

	"intents.internal/core/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
