package main

// What the tests use of the program.
var (
	Run             = run
	InputSettler    = inputContract.ABI
	OutputSettler   = outputContract.ABI
	Oracle          = oracleContract.ABI
	Token           = tokenContract.ABI
	FiatToken       = fiatContract.ABI
	Permit2         = permit2
	OwnerAddress    = address(ownerKey)
	DevelopmentKeys = developmentKeys
)
