package embedded

// StartWithWatchdog starts c with a watchdog, which StartProcess does not use on Linux.
func StartWithWatchdog(c Command) (*Process, error) { return start(c, false) }

var (
	ParseURI        = parseURI
	ParseGet        = parseGet
	ParseAptError   = parseAptError
	ServerProcesses = serverProcesses
	DataOf          = func(p *Postgres) string { return p.data }
)
