package edge

import "intents.internal/gateway/socket"

// Gone reports whether the client has closed its connection, or at least its sending side; nobody waits for an answer
// then. A client that has sent its next requests already is not known to be gone.
func (v *visitor) Gone() bool { return socket.NewEye(v.tcp).Look() == socket.Ended }
