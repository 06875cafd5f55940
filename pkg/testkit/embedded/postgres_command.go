package embedded

import (
	"path/filepath"
	"slices"
	"syscall"
)

func (p *Postgres) command() Command {
	return Command{
		Name:   "postgres",
		Path:   filepath.Join(p.binaries.dir, "postgres"),
		Args:   p.arguments(),
		Env:    slices.Concat(p.binaries.env, p.env),
		Dir:    "/",
		Output: p.log,
		// SIGQUIT is the immediate shutdown, which also ends the backends: they are not in the server's process group.
		OrphanSignal: syscall.SIGQUIT,
		user:         p.user,
	}
}

func (p *Postgres) arguments() []string {
	settings := []string{
		"listen_addresses=",
		"unix_socket_directories=" + p.run.path,
		"cluster_name=" + clusterName(p.data),
		"max_connections=200",
		"log_line_prefix=",
		"log_checkpoints=off",
		"timezone=GMT",
		"log_timezone=GMT",
		"jit=off",
	}
	if p.ephemeral {
		settings = append(settings,
			"fsync=off", "full_page_writes=off", "synchronous_commit=off",
			// A replica reconnects to its primary soon, instead of after 5 s.
			"wal_retrieve_retry_interval=100ms",
			// Shared memory in files of the data directory leaves nothing in /dev/shm when the server is killed.
			"dynamic_shared_memory_type=mmap")
	}
	if !p.inMemory {
		// A page is logged whole at its first change after a checkpoint, so under load frequent checkpoints multiply the log.
		settings = append(settings, "max_wal_size=4GB")
	}
	args := []string{"-D", p.data}
	for _, setting := range append(settings, p.settings...) {
		args = append(args, "-c", setting)
	}
	return args
}
