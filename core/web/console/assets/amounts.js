// The amounts of a form in smallest units while they are typed, exactly as the service will read them.

const largest = 2n ** 256n - 1n; // uint256

// smallestUnits says what an amount of whole tokens, such as "1.5" or "1.5 USDC", is in smallest units, or what is wrong with it.
function smallestUnits(text, symbol, decimals) {
  let number = text.trim();
  if (number.length > symbol.length && number.toLowerCase().endsWith(symbol.toLowerCase())) number = number.slice(0, -symbol.length).trim();
  const [, whole, typed = ""] = /^([0-9]*)(?:\.([0-9]*))?$/.exec(number) ?? [];
  if (whole === undefined || whole + typed === "") return `Not a number of ${symbol} such as 1.5`;
  const fraction = typed.replace(/0+$/, "");
  if (fraction.length > decimals) return `More decimal places than the ${decimals} of ${symbol}`;
  const units = BigInt(whole + fraction.padEnd(decimals, "0"));
  return units > largest ? "More than a token amount can be" : `${units} in the smallest unit of ${symbol}`;
}

const [sourceChain, destinationChain, sourceToken] = ["sourceChain", "destinationChain", "sourceToken"].map((id) => document.getElementById(id));

// tokenOf is the option of an amount's token. On the same chain the destination's is the source's until another is chosen.
function tokenOf(select) {
  const sameChain = ["", sourceChain.value].includes(destinationChain.value);
  return (select.value === "" && sameChain ? sourceToken : select).selectedOptions[0];
}

for (const output of document.querySelectorAll("[data-units]")) {
  const [amount, select] = Array.from(output.htmlFor, (id) => document.getElementById(id));
  const show = () => {
    const { symbol, decimals } = tokenOf(select).dataset;
    output.value = symbol && amount.value.trim() ? smallestUnits(amount.value, symbol, Number(decimals)) : "";
  };
  amount.form.addEventListener("input", show); // of a select too
  addEventListener("pageshow", show); // the browser may have filled in the form
  show();
}
