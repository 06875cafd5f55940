package webhook

// VerifyAt is Verify at another time.
var VerifyAt = verify
