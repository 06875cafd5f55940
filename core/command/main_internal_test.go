package command

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// No settings are needed to be told how a command is used.
func TestRun_Usage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, says string }{
		{"", "name a command"},
		{"frobnicate", `there is no command "frobnicate"`},
		{"Serve", `there is no command "Serve"`},
		{"serve now", "serve takes no further words"},
		{"watch eip155:1", "watch takes no further words"},
		{"migrate down", "the command takes other words"},
		{"chains", "use: core chains import FILE"},
		{"chains import", "use: core chains import FILE"},
		{"chains export x", "use: core chains import FILE"},
		{"chains check a b", "use: core chains import FILE"},
		{"chains resume", "use: core chains import FILE"},
		{"chains resume eip155:1", "use: core chains import FILE"},
		{"chains resume --from 1", `"--from" must be a chain id such as eip155:1; use: core chains import FILE`},
		{"chains resume eip155:1 --from -1", `invalid value "-1" for flag -from`},
		{"chains resume eip155:1 --to 1", "flag provided but not defined: -to"},
		{"tokens import a b", "use: core tokens import [--source NAME] [--license SPDX]"},
		{"tokens import --licence MIT a", "flag provided but not defined: -licence; use: core tokens import"},
		{"tokens import a --license M!T", "license must be an SPDX license expression"},
		{"tokens sources all", "use: core tokens import"},
		{"accounts", "use: core accounts list, or core accounts create EMAIL [NAME], or core accounts reset-password|reset-link|verify-email|disable|enable|delete EMAIL"},
		{"accounts disable", "use: core accounts list, or core accounts create EMAIL [NAME]"},
		{"accounts delete ann@example.com Ann", "use: core accounts list, or core accounts create EMAIL [NAME]"},
		{"accounts create ann@example.com Ann Lee", "use: core accounts list, or core accounts create EMAIL [NAME]"},
		{"screening", "use: core screening check [--accept-smaller] FILE…"},
		{"screening check", "use: core screening check"},
		{"screening hits now", "use: core screening check"},
		{"screening hits --since soon", `invalid value "soon" for flag -since`},
		{"screening find", "use: core screening check"},
		{"screening find 0x12", `"0x12" must be an address of 0x and 40 hexadecimal digits; use: core screening check`},
		{"screening add 0x12", "use: core screening check"},
	} {
		err := run(t.Context(), strings.Fields(c.args))
		if _, misuse := errors.AsType[usageError](err); !misuse || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("core %s: %v", c.args, err)
		}
	}
}

// Gateways and the proxies before core, whose idle timeout is 60 s by default, must be the side that closes.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	if idleTimeout < 70*time.Second {
		t.Errorf("idle connections of gateways are closed after %s", idleTimeout)
	}
}

// Help and the version need no settings, whatever the command.
func TestRun_Help(t *testing.T) {
	t.Parallel()
	for name := range commands {
		for _, args := range [][]string{{name, "-h"}, {name, "--help"}, {name, "list", "-help"}, {"help", name}} {
			if err := run(t.Context(), args); err != nil {
				t.Errorf("core %s: %v", args, err)
			}
		}
		if !strings.Contains(usage, "\n  core "+name+" ") {
			t.Errorf("the help does not have core %s", name)
		}
	}
}
