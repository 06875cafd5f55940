package postgres

import (
	"io/fs"

	"github.com/uptrace/bun"
)

// UseMigrations gives a store other migrations than those of this version.
func UseMigrations(s *Store, files fs.FS) { s.migrationFiles = files }

// Watch has a hook see the statements of a store that nobody uses yet.
func Watch(s *Store, hook bun.QueryHook) {
	s.db = s.db.WithQueryHook(hook)
	s.writer.db = s.db
}

// OpenConnections counts a store's connections to its primary, ReplicaConnectionsInUse those to its replica that a statement has.
func OpenConnections(s *Store) int         { return int(s.pools[len(s.pools)-1].Stat().TotalConns()) }
func ReplicaConnectionsInUse(s *Store) int { return int(s.pools[0].Stat().AcquiredConns()) }
