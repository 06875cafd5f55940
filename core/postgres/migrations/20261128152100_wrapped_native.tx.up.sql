-- The symbol of the token that wraps the chain's native currency, NULL for W and the currency's symbol, or WETH.
ALTER TABLE chains ADD wrapped_native text;
