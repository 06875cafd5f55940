package main

// What the tests use of the program.
var (
	Run             = run
	Settler         = settlerContract.ABI
	Token           = tokenContract.ABI
	OwnerAddress    = address(ownerKey)
	DevelopmentKeys = developmentKeys
)
