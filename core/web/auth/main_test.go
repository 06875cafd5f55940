package auth_test

import (
	"strings"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

func TestMain(m *testing.M) {
	pgtest.Main(webtest.Documented{M: m, Answers: func(path string) bool { return strings.HasPrefix(path, "/auth/") }})
}
