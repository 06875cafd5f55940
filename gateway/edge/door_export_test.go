package edge

// Affordable lowers bounds of connections to what the open files allow, and HomeOf is whose bound a connection counts for.
var (
	Affordable    = affordable
	HomeOf        = homeOf
	OpenFileLimit = openFileLimit
)
