// What a page can do better with a script. Without it every page works, but for signing in with a wallet.

// Copy buttons.
for (const button of document.querySelectorAll("[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  const says = document.getElementById(`${button.dataset.copy}-copied`);
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      says.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(source);
      says.textContent = "Selected; copy it with your keyboard.";
    }
  });
}

// A form that must not be sent twice by a double click.
for (const form of document.querySelectorAll("form[data-once]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => delete form.dataset.sent);
}

// Usage that keeps up: the parts marked data-live are taken from a fresh copy of the page while somebody looks at it.
async function refresh() {
  if (document.hidden || document.querySelector("[data-live] :focus, [data-live]:focus")) return true;
  const answer = await fetch(location.pathname, { redirect: "error" });
  if (!answer.ok) return answer.status >= 500;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const open = new Set(Array.from(part.querySelectorAll("details[open]"), (details) => details.id));
    const replacement = document.importNode(fresh.querySelector(`[data-live="${part.dataset.live}"]`), true);
    for (const details of replacement.querySelectorAll("details")) details.open = open.has(details.id);
    part.replaceChildren(...replacement.childNodes);
  }
  return true;
}

// The page of a key alone, not the answer to one of its forms.
if (document.querySelector("[data-live]") && /^\/console\/keys\/[^/]+$/.test(location.pathname)) {
  const timer = setInterval(async () => {
    if (!(await refresh().catch(() => false))) clearInterval(timer);
  }, 5000);
}

// Signing in with a wallet (EIP-1193, EIP-4361).
const wallet = document.querySelector("[data-wallet]");
if (wallet) {
  const says = document.getElementById("wallet-says");
  const offer = () => { wallet.hidden = !window.ethereum; };
  offer();
  addEventListener("ethereum#initialized", offer, { once: true });
  wallet.querySelector("button").addEventListener("click", async () => {
    says.textContent = "Confirm in your wallet…";
    try {
      await signIn();
      location.assign(wallet.dataset.wallet);
    } catch (error) {
      says.textContent = error?.code === 4001 ? "You declined in your wallet." : (error?.message || "The wallet did not sign.");
    }
  });
}

async function signIn() {
  const [address] = await window.ethereum.request({ method: "eth_requestAccounts" });
  const chain = Number(await window.ethereum.request({ method: "eth_chainId" }));
  const message = await text(await fetch("/console/sign-in/wallet-message", { method: "POST", body: new URLSearchParams({ address, chain }) }));
  const bytes = Array.from(new TextEncoder().encode(message), (byte) => byte.toString(16).padStart(2, "0"));
  const signature = await window.ethereum.request({ method: "personal_sign", params: [`0x${bytes.join("")}`, address] });
  await text(await fetch("/auth/siwe/verify", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ message, signature, walletAddress: address, chainId: chain }),
  }));
}

// text is the body of a good answer; any other is an error in the service's words, or in general ones.
async function text(answer) {
  const body = await answer.text();
  if (answer.ok) return body;
  if (answer.headers.get("Content-Type")?.startsWith("application/json")) throw new Error(JSON.parse(body).message);
  const after = answer.headers.get("Retry-After");
  throw new Error(after ? `Not possible at this moment. Try again in ${after} seconds.` : "The sign-in did not work.");
}
