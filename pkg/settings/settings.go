// Package settings reads a service's settings from its environment and from a file whose entries override the environment.
//
// It owns the file format, which names are settings, and what a secret may consist of. Its errors list all faults at once, each with
// its variable, and contain no values of secrets.
package settings

import (
	"errors"
	"maps"
	"os"
	"reflect"

	"github.com/caarlos0/env/v11"
)

// Environment returns the environment of this process.
func Environment() map[string]string { return env.ToMap(os.Environ()) }

// Read reads a C, a struct whose fields name their variables by env tags and their defaults by envDefault tags. An empty variable is
// an unset one.
//
// Variables with the prefix, such as CORE_, belong to the service: Read refuses those that no field names, unless Kubernetes, Docker
// or a local stack set them. The variable PREFIXENV_FILE names a file whose entries override the environment; if it is unset, there is no file. Fields of
// the type telemetry.Secret are trimmed, as trimSecrets says. check adds the faults of the values. The error has one line per fault, and
// none of check on a variable that could not be read.
func Read[C any](environment map[string]string, prefix string, check func(C, *Faults)) (C, error) {
	var config C
	var faults, invalid Faults
	fields := fieldsOf[C]()
	all := maps.Clone(environment)
	variable := prefix + "ENV_FILE"
	if path := environment[variable]; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			faults.Add(variable, "cannot be read: %v", err)
			return config, faults.Err()
		}
		maps.Copy(all, readFile(string(text), variable, fields, &faults))
	}
	checkNames(environment, prefix, fields, &faults)
	trimSecrets(all, fields, &faults)
	config, err := env.ParseAsWithOptions[C](env.Options{Environment: all})
	addUnreadable[C](err, &faults)
	check(config, &invalid)
	faults.addOthers(invalid)
	return config, faults.Err()
}

// fieldsOf returns the fields of C by their variables.
func fieldsOf[C any]() map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[C]()) {
		if name := field.Tag.Get("env"); name != "" {
			fields[name] = field
		}
	}
	return fields
}

// addUnreadable adds the values that could not be parsed. The parser's error names fields.
func addUnreadable[C any](err error, faults *Faults) {
	var all env.AggregateError
	if !errors.As(err, &all) {
		return
	}
	for _, err := range all.Errors {
		var bad env.ParseError
		if !errors.As(err, &bad) {
			faults.Add("environment", "%v", err)
			continue
		}
		field, _ := reflect.TypeFor[C]().FieldByName(bad.Name)
		faults.Add(field.Tag.Get("env"), "cannot be read: %v", bad.Err)
	}
}
