// The page of an intent, and of its refund, where a wallet sends the transaction and its hash is reported.
import { offerWallets } from "./wallets.js";
import { Failure, batchHash, codeOf, connect, declined, preparations, sendBatch, sendCall, succeeded, useChain } from "./transaction.js";
import { granted, showChecks } from "./checks.js";
import { alertOf, current, explain, parse } from "./page.js";
import { memory } from "./memory.js";

const section = document.querySelector("[data-send]");
const form = document.querySelector("[data-report]");
const says = document.getElementById("send-says");
const intent = form?.dataset.report;
let busy = false;
let warnedOf; // when a wallet was asked, of which this page has warned

function say(text) { says.textContent = text; }

// fresh is the transaction as the service gives it now. An intent that another tab has paid has none. outcome says what was sent until then.
const fresh = (outcome = "Nothing was sent.") => current("send", "The intent is not to be paid any more: its status or deadline has changed.", outcome);

// alone runs work while no other tab of this browser works on the same intent (Web Locks), and fails where one does. Without the API,
// which needs a secure context, work runs unguarded.
async function alone(work) {
  if (!navigator.locks) return work();
  const { id } = section ? JSON.parse(section.dataset.send) : { id: intent };
  return navigator.locks.request(`transfer ${id}`, { ifAvailable: true }, (lock) => {
    if (!lock) throw new Failure("It is being sent in another tab of this browser. Nothing was sent here.");
    return work();
  });
}

// ask has the wallet do what moves the money. An error with a code is its answer that nothing was sent; after any other that is not known.
// An earlier request that was not answered stays in memory.
async function ask(request) {
  const before = memory.read(intent);
  memory.write(intent, { asked: Date.now() });
  try {
    return await request();
  } catch (error) {
    if (codeOf(error) === undefined) throw new Failure(`The wallet failed: ${error?.message}. Look in the wallet whether it has sent anything.`);
    memory.write(intent, before);
    throw error;
  }
}

// onlySent says that no more than these preparations were sent.
const onlySent = (sent) => `Only the ${sent.map(({ name }) => name).join(" and the ")} ${sent.length > 1 ? "were" : "was"} sent; nothing was paid.`;

// sendAll has the wallet send the preparations and the last call, all at once where it can, and returns the hash of the last transaction.
async function sendAll(provider, calls, prepared) {
  const last = calls.calls.at(-1);
  if (prepared.length > 0) {
    const before = memory.read(intent);
    const batch = await ask(() => sendBatch(provider, { ...calls, calls: [...prepared.map(({ call }) => call), last] }));
    memory.write(intent, batch === null ? before : { batch });
    if (batch !== null) return waitForBatch(provider, batch);
  }
  const sent = [];
  try {
    for (const preparation of prepared) {
      await prepare(provider, calls, preparation);
      sent.push(preparation);
    }
    if (sent.length > 0) await fresh(onlySent(sent)); // a block may take minutes
    say("Confirm the transaction in your wallet…");
    return await ask(() => sendCall(provider, calls, last));
  } catch (error) {
    if (sent.length === 0 || codeOf(error) !== declined) throw error;
    throw new Failure(`You declined in the wallet. ${onlySent(sent)}`);
  }
}

async function waitForBatch(provider, batch) {
  say("Sent. Waiting until it is in a block…");
  try {
    return await batchHash(provider, batch);
  } catch (error) {
    if (!(error instanceof Failure)) {
      throw new Failure(`The calls are sent, and the wallet does not tell what became of them: ${error?.message}. Choose it again to ask once more, ` +
        "or look in the wallet and report the hash of their last transaction below.");
    }
    memory.write(intent, null);
    throw error;
  }
}

async function prepare(provider, calls, { name, call }) {
  say(`Confirm the ${name} in your wallet; the transaction itself comes after it…`);
  const hash = await sendCall(provider, calls, call);
  say(`The ${name} is sent. Waiting until it is in a block…`);
  if (!(await succeeded(provider, hash))) throw new Failure(`The ${name} ${hash} reverted. Nothing was paid.`);
}

async function send({ provider }) {
  const kept = memory.read(intent); // another tab may have left it after this page was opened
  if (kept?.hash) return report(kept.hash);
  if (kept?.batch) return report(await waitForBatch(provider, kept.batch));
  if (kept?.asked && kept.asked !== warnedOf) throw new Failure(warn(kept.asked));
  const { calls, allowances, chain, addChain } = await fresh();
  say("Connect in your wallet…");
  calls.from = await connect(provider, calls.from);
  await useChain(provider, calls.chainId, chain, addChain);
  const prepared = await preparations(provider, calls, allowances, await granted());
  await fresh(); // the wallet may have taken long until here
  say("Confirm in your wallet…");
  const hash = await sendAll(provider, calls, prepared);
  return intent ? report(hash) : unreported(provider, hash);
}

// unreported follows a refund, or the revocation of a signature.
async function unreported(provider, hash) {
  const { purpose } = section.dataset;
  say(`The ${purpose} is sent: ${hash}. Waiting until it is in a block…`);
  if (!(await succeeded(provider, hash))) return say(`The ${purpose} ${hash} reverted. Load the page again to see whether it is still needed.`);
  say(purpose === "refund"
    ? `The refund ${hash} is in a block. The intent's page shows it once that block is deep enough.`
    : `The revocation ${hash} is in a block. Nobody can use the signature any more.`);
}

// report tells the service the hash. The hash is kept until the service has it or will not take it.
async function report(hash) {
  memory.write(intent, { hash });
  say(`Sent: ${hash}. Reporting it…`);
  const later = `The transaction ${hash} is sent, but could not be reported. It is reported when you open this page again, signed in.`;
  let answer;
  try {
    answer = await fetch(form.action, { method: "POST", body: new URLSearchParams({ hash }) });
  } catch {
    return say(later);
  }
  const done = answer.ok && new URL(answer.url).pathname === `/console/transfers/${intent}`;
  const refused = [400, 404, 409].includes(answer.status);
  if (!done && !refused) return say(later);
  memory.write(intent, null);
  if (done) return location.replace(answer.url);
  say(`The transaction ${hash} is sent, but not taken: ${alertOf(parse(await answer.text()))}`);
}

async function use(wallet) {
  busy = true;
  try {
    await alone(() => send(wallet));
  } catch (error) {
    say(explain(error, "nothing was sent"));
  } finally {
    busy = false;
  }
}

// warn is said before another transaction is sent after one that may have been.
function warn(asked) {
  warnedOf = asked;
  return `A wallet was asked to send this at ${new Date(asked).toLocaleString()}, and its answer did not arrive. ` +
    "Look in the wallet: if it has sent a transaction, report its hash below instead of sending another.";
}

// resume takes up what another visit of the page left.
function resume() {
  const kept = memory.read(intent);
  if (kept?.hash) return report(kept.hash);
  if (kept?.batch && section) say("Calls were sent from this page before. Choose the wallet that sent them, and their transaction is reported.");
  else if (kept?.asked && section) say(warn(kept.asked));
}

if (section) {
  offerWallets(section.querySelector("[data-wallets]"), "Send with", "", use);
  document.addEventListener("refreshed", ({ detail }) => {
    if (busy || detail.querySelector("[data-send]")) return;
    for (const part of document.querySelectorAll("[data-wallets], [data-preflight]")) part.hidden = true;
  });
}
showChecks();
if (memory.read(intent)) alone(resume).catch((error) => say(explain(error, "nothing was sent")));
