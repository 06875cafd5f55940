package settings

import (
	"reflect"
	"strings"
	"unicode"

	"intents.internal/pkg/telemetry"
)

// trimSecrets removes blanks and control characters, such as the line break that an editor ends a file with, from both ends of every
// secret. Inside they are faults, because HTTP and URLs forbid them, so that the secret would never match. A space inside is a
// character like any other (RFC 6749 appendix A.2, RFC 9110 section 5.5).
func trimSecrets(environment map[string]string, fields map[string]reflect.StructField, faults *Faults) {
	for _, name := range sortedNames(fields) {
		value, isSet := environment[name]
		if !isSet || fields[name].Type != reflect.TypeFor[telemetry.Secret]() {
			continue
		}
		value = strings.TrimFunc(value, isBlank)
		environment[name] = value
		if strings.ContainsFunc(value, func(r rune) bool { return isBlank(r) && r != ' ' }) {
			faults.Add(name, "has a control character or a blank other than a space inside, such as a line break: set it again without")
		}
	}
}

func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
