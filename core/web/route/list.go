package route

// Each converts every member of a list. The result is never nil, so that it is written as [] and not as null.
func Each[From, To any](from []From, convert func(From) To) []To {
	to := make([]To, len(from))
	for i, f := range from {
		to[i] = convert(f)
	}
	return to
}
