// Having a wallet (EIP-1193) send a transaction's calls, which are the parameters of wallet_sendCalls (EIP-5792).

// declined is the code of a request that the user did not allow (EIP-1193).
export const declined = 4001;
// unknownChain is the code for a chain that the wallet does not have (EIP-3326).
const unknownChain = 4902;
// unsupported are the codes by which a wallet says that it sends no such calls and has sent nothing (JSON-RPC, EIP-1193, EIP-5792).
const unsupported = new Set([-32601, -32004, 4200, 5700, 5710, 5740, 5750, 5760]);

// codeOf is the code of a wallet's error; some wallets wrap the one that counts.
export const codeOf = (error) => error?.data?.originalError?.code ?? error?.code;

// Failure is an error whose message is for the page.
export class Failure extends Error {}

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

// connect has the wallet offer its accounts and returns this one, or the first where from is empty because any account will do. It fails without one.
export async function connect(provider, from) {
  const accounts = await provider.request({ method: "eth_requestAccounts" });
  if (!from && accounts.length > 0) return accounts[0];
  if (accounts.some((account) => account.toLowerCase() === from.toLowerCase())) return from;
  throw new Failure(`Only ${from || "an account"} can send it, and the wallet offers ${accounts.join(", ") || "no account"}. ` +
    "Choose that account in the wallet and try again. Nothing was sent.");
}

// useChain has the wallet switch to a chain (EIP-3326), and first add it where the wallet does not know it. addChain is the parameter of
// wallet_addEthereumChain (EIP-3085), null where the service has no public RPC URL of the chain.
export async function useChain(provider, chainId, name, addChain) {
  const chain = `${name} (chain id ${Number(chainId)})`;
  if (await isOn(provider, chainId)) return;
  if (!(await switchChain(provider, chainId, chain))) {
    const unknown = `The wallet does not know ${chain}. Add the chain in the wallet first, then try again. Nothing was sent.`;
    if (!addChain) throw new Failure(unknown);
    await offerChain(provider, addChain, chain);
    if (await isOn(provider, chainId)) return;
    if (!(await switchChain(provider, chainId, chain))) throw new Failure(unknown);
  }
  if (!(await isOn(provider, chainId))) throw new Failure(`The wallet is still on another chain. Switch it to ${chain}, then try again. Nothing was sent.`);
}

async function isOn(provider, chainId) {
  return BigInt(await provider.request({ method: "eth_chainId" })) === BigInt(chainId);
}

// switchChain reports whether the wallet knows the chain.
async function switchChain(provider, chainId, chain) {
  try {
    await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
    return true;
  } catch (error) {
    if (codeOf(error) === unknownChain) return false;
    if (codeOf(error) === declined) throw error;
    throw new Failure(`The wallet did not switch to ${chain}. Switch it there yourself, then try again. Nothing was sent.`);
  }
}

// offerChain has the wallet add a chain. EIP-3085 leaves open whether it also switches to it.
async function offerChain(provider, addChain, chain) {
  try {
    await provider.request({ method: "wallet_addEthereumChain", params: [addChain] });
  } catch (error) {
    const why = codeOf(error) === declined ? "You declined to add" : "The wallet did not add";
    throw new Failure(`${why} ${chain}, which it does not know. Allow it, or add the chain in the wallet yourself, then try again. Nothing was sent.`);
  }
}

// preparations are the calls that must precede the last one, with their names: for each allowance, in the order of calls, its approval where
// it is not in place, and before that its reset where it is not 0 either, since some tokens refuse to change one. inPlace is whether they
// are in place as far as the service knows, which decides where the wallet does not tell.
export async function preparations(provider, { calls }, allowances, inPlace) {
  const needed = [];
  for (const [n, { query, amount, reset }] of allowances.entries()) {
    const granted = await allowanceOf(provider, query) ?? (inPlace ? BigInt(amount) : 0n);
    if (granted >= BigInt(amount)) continue;
    if (granted > 0n) needed.push({ name: "reset of the allowance", call: reset });
    needed.push({ name: "approval", call: calls[n] });
  }
  return needed;
}

// allowanceOf is null where the wallet does not tell the allowance.
async function allowanceOf(provider, query) {
  try {
    return BigInt(await provider.request({ method: "eth_call", params: [query, "latest"] }));
  } catch {
    return null;
  }
}

// sendBatch sends all calls with one request and returns the batch's id, or null where the wallet cannot do that.
export async function sendBatch(provider, calls) {
  try {
    await provider.request({ method: "wallet_getCapabilities", params: [calls.from, [calls.chainId]] });
  } catch {
    return null; // a wallet without EIP-5792
  }
  try {
    const answer = await provider.request({ method: "wallet_sendCalls", params: [calls] });
    return answer.id ?? answer; // a text in the first versions of EIP-5792
  } catch (error) {
    if (unsupported.has(codeOf(error))) return null;
    throw error;
  }
}

// batchHash waits for up to timeout milliseconds until a batch is in a block, and returns the hash of its last transaction. A Failure, of a status
// of 400 to 699 (EIP-5792), says that nothing was paid; after any other error that is not known.
export async function batchHash(provider, id, timeout = 300_000) {
  for (const end = Date.now() + timeout; ;) {
    const { status, receipts } = await provider.request({ method: "wallet_getCallsStatus", params: [id] });
    if (status >= 400 && status < 500) throw new Failure("The wallet did not send the calls. Nothing was paid.");
    if (status >= 500 && status < 700) throw new Failure("The calls reverted on chain, the last one at least. Nothing was paid but gas.");
    if (!(status >= 100 && status < 200)) {
      const hash = status >= 200 && status < 300 ? receipts?.at(-1)?.transactionHash : undefined;
      if (hash) return hash;
      throw new Error(`it names no transaction, status ${status}`);
    }
    if (Date.now() >= end) throw new Error("they are in no block yet");
    await pause(1000);
  }
}

// sendCall sends one call and returns its transaction's hash.
export function sendCall(provider, { from, chainId }, { to, value, data }) {
  return provider.request({ method: "eth_sendTransaction", params: [{ from, to, value, data, chainId }] });
}

// succeeded waits until a transaction is in a block and reports whether it succeeded.
export async function succeeded(provider, hash) {
  for (;;) {
    const receipt = await provider.request({ method: "eth_getTransactionReceipt", params: [hash] });
    if (receipt) return BigInt(receipt.status) === 1n;
    await pause(1000);
  }
}
