package edge

// Affordable lowers bounds of connections to what the open files allow.
var (
	Affordable    = affordable
	OpenFileLimit = openFileLimit
)
