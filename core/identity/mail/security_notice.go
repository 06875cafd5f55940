package mail

import "time"

// SecurityNotice is the data of the message about an entry in the audit log. It has no text that a user chose except addresses and plain
// names.
type SecurityNotice struct {
	Link
	// Action is that of the entry, such as password_changed.
	Action string
	// Account and KeyName are shown as plainName returns them; KeyName is that of a new key, or of the one that it replaces.
	Account, KeyName string
	// Member is the address of a new owner and their role, empty for other actions.
	Member string
	// At is when it happened.
	At time.Time
	// By is the address of the person who was signed in. Browser, shown as plainName returns it, and IPAddress are what they used.
	// Each is empty if it is not known.
	By, Browser, IPAddress string
	// PerHour is how many such messages are sent an hour.
	PerHour int
}

// When returns At in UTC.
func (n SecurityNotice) When() string { return n.At.UTC().Format("2 January 2006, 15:04:05 UTC") }

// WriteSecurityNotice returns the message.
func WriteSecurityNotice(to string, n SecurityNotice) (*Message, error) {
	n.Account, n.KeyName = plainName(n.Account), plainName(n.KeyName)
	if n.Browser != "" {
		n.Browser = plainName(n.Browser)
	}
	return write(to, "Security notice of "+n.Service, "security-notice", n)
}
