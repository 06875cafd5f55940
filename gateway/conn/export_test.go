package conn

// CapByOpenFiles lowers bounds of connections to what the open files allow.
var CapByOpenFiles = capByOpenFiles
