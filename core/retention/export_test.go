package retention

// PruneSteps are the names of the steps of Prune, in their order.
func PruneSteps() (names []string) {
	for _, step := range (pruner{}).steps(Retention{}) {
		names = append(names, step.name)
	}
	return names
}
