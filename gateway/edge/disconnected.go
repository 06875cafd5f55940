package edge

import "intents.internal/gateway/socket"

// Disconnected reports whether the client has closed its connection, or at least its sending side; nobody waits for an answer
// then. A client that has sent its next requests already is not known to be gone.
func (v *visitor) Disconnected() bool { return socket.NewEye(v.tcp).Look() == socket.Ended }
