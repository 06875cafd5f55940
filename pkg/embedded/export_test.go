package embedded

// StartGuarded starts c under the portable watchdog, which Linux does without.
func StartGuarded(c Command) (*Process, error) { return start(c, false) }

var (
	ParseURI        = parseURI
	ParseGet        = parseGet
	ParseComplaint  = parseComplaint
	ServerProcesses = serverProcesses
	DataOf          = func(p *Postgres) string { return p.data }
	RoomInMemory    = roomInMemory
	RunDirOf        = func(p *Postgres) string { return p.run.path }
)
