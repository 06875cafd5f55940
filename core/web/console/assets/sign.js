// The page of an intent whose user signs, and of its revocation: a wallet signs typed data (EIP-712), and the signature is sent to the service, or shown
// where the service needs none.
import { offerWallets } from "./wallets.js";
import { Failure, connect, preparations, sendCall, succeeded, useChain } from "./transaction.js";
import { alertOf, current, explain, parse } from "./page.js";

const section = document.querySelector("[data-sign]");
const form = document.querySelector("[data-signature]");
const says = document.getElementById("sign-says");
let busy = false;

function say(text) { says.textContent = text; }

const fresh = (outcome) => current("sign", "The intent is not to be signed any more: its status or deadline has changed.", outcome);

async function sign({ provider }) {
  const { calls, allowances, chain, addChain } = await fresh("Nothing was signed.");
  say("Connect in your wallet…");
  await connect(provider, calls.from);
  await useChain(provider, calls.chainId, chain, addChain); // wallets sign for the chain that they are on
  const prepared = await preparations(provider, calls, allowances, false);
  for (const preparation of prepared) await prepare(provider, calls, preparation);
  const { typedData } = await fresh(prepared.length > 0 ? "Only the approval was sent." : "Nothing was signed."); // a block may take minutes
  say("Sign in your wallet. Compare what it shows with this page…");
  const signature = await provider.request({ method: "eth_signTypedData_v4", params: [calls.from, typedData] });
  return form ? hand(signature) : show(signature);
}

async function prepare(provider, calls, { name, call }) {
  say(`Confirm the ${name} in your wallet, which costs gas; the signature comes after it…`);
  const hash = await sendCall(provider, calls, call);
  say(`The ${name} is sent. Waiting until it is in a block…`);
  if (!(await succeeded(provider, hash))) throw new Failure(`The ${name} ${hash} reverted. Nothing was signed.`);
}

// hand sends the service the signature, and leads to the page that says so.
async function hand(signature) {
  say("Signed. Sending the signature to the service…");
  const unsent = "It is signed, but the service did not take the signature. Nothing is executed; try again.";
  let answer;
  try {
    answer = await fetch(form.action, { method: "POST", body: new URLSearchParams({ signature }) });
  } catch {
    return say(unsent);
  }
  if (answer.ok && new URL(answer.url).searchParams.get("done") === "signed") return location.replace(answer.url);
  say(alertOf(parse(await answer.text())) ?? unsent);
}

function show(signature) {
  document.getElementById("revocation").textContent = signature;
  say("Signed. The signature stands below.");
}

async function use(wallet) {
  busy = true;
  try {
    await sign(wallet);
  } catch (error) {
    say(explain(error, "nothing was signed"));
  } finally {
    busy = false;
  }
}

offerWallets(section.querySelector("[data-wallets]"), "Sign with", "", use);
document.addEventListener("refreshed", ({ detail }) => {
  if (busy || detail.querySelector("[data-sign]")) return;
  for (const part of document.querySelectorAll("[data-wallets], [data-preflight]")) part.hidden = true;
});
