package tokenbucket

// Source is the script of buckets on one server.
func Source() string { return gcraSource + takeSource }

// AccountSource is the script of an account's buckets on a Cluster.
func AccountSource() string { return gcraSource + takeAccountSource }
