// Package parallel has the tests of a package that mostly wait run beside each other.
package parallel

import "flag"

// Tests lets this many parallel tests of a test binary run at the same time, where -parallel says nothing else: the default is as
// many as there are cores, which is too few for tests that wait for other processes. Call it from TestMain, once and before
// the tests run. It parses the flags.
func Tests(atOnce string) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", atOnce) // every test binary has it
	}
}
