package postgres

import (
	"io/fs"
)

// UseMigrations gives a database other migrations than those of this version.
func UseMigrations(d *DB, files fs.FS) { d.migrationFiles = files }

// OpenConnections counts the connections to its primary, ReplicaConnectionsInUse those to its replica that a statement has.
func OpenConnections(d *DB) int         { return int(d.pools[len(d.pools)-1].Stat().TotalConns()) }
func ReplicaConnectionsInUse(d *DB) int { return int(d.pools[0].Stat().AcquiredConns()) }
