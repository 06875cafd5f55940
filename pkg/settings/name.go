package settings

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// checkNames adds a fault for every variable with the prefix that is no setting.
func checkNames(environment map[string]string, prefix string, known map[string]reflect.StructField, faults *Faults) {
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		if _, isSetting := known[name]; isSetting || !strings.HasPrefix(name, prefix) || isInjected(environment, prefix, name) {
			continue
		}
		faults.add(name, unknown(name, known))
	}
}

var (
	// serviceLink matches what Kubernetes sets for each service of the namespace, whose name comes first. A service core of a release is
	// CORE_SERVICE_HOST, a service core-metrics CORE_METRICS_SERVICE_HOST.
	serviceLink = regexp.MustCompile(`_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$`)
	// portLink matches what Docker sets for each port of a linked container, and Kubernetes for each port of a service.
	portLink = regexp.MustCompile(`_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR|START|END))?$`)
	// portURL matches the value of their variable NAME_PORT. That of a misspelled setting is a number.
	portURL = regexp.MustCompile(`^(tcp|udp|sctp)://`)
	// ofStack matches what follows the prefix in the variables of a running local stack, which the shell has after `deploy/local env`.
	ofStack = regexp.MustCompile(`^(URLS?|METRICS_URL|([0-9]+_)?PID)$`)
)

// isInjected reports whether Kubernetes or Docker set the variable for a service or a linked container whose name begins like the prefix,
// or a local stack that also set the other variables of its services. One of those alone is a misspelled setting.
func isInjected(environment map[string]string, prefix, name string) bool {
	switch rest := strings.TrimPrefix(name, prefix); {
	case serviceLink.MatchString(name), portLink.MatchString(name):
		return true
	case strings.HasSuffix(name, "_PORT"):
		return portURL.MatchString(environment[name])
	case rest == "NAME" || strings.HasPrefix(rest, "ENV_"): // of a linked container, and of its environment
		return strings.HasPrefix(environment[prefix+"NAME"], "/")
	case ofStack.MatchString(rest):
		return environment[prefix+"URLS"] != "" && environment[prefix+"METRICS_URL"] != ""
	default:
		return false
	}
}

// unknown is the fault of a variable that is no setting, with the setting that was most likely meant.
func unknown(name string, known map[string]reflect.StructField) string {
	text := "there is no setting " + name
	best, least := "", len(name)/4+1
	for _, candidate := range sortedNames(known) {
		if d := distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	if best != "" {
		text += "; did you mean " + best + "?"
	}
	return text
}

// distance is the least number of letters to add, remove, replace or swap with the next one (optimal string alignment) that turns one
// name into the other.
func distance(from, to string) int {
	rows := make([][]int, len(from)+1)
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
			case from[i-1] == to[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(from)][len(to)]
}

func sortedNames(fields map[string]reflect.StructField) []string {
	return slices.Sorted(maps.Keys(fields))
}
