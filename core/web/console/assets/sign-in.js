// Signing in with a wallet (EIP-4361), and linking one to the account that is signed in.
import { offerWallets } from "./wallets.js";
import { codeOf, declined } from "./transaction.js";

const place = document.querySelector("[data-wallet]");
const says = document.getElementById("wallet-says");

const linking = "link" in place.dataset;

offerWallets(place, linking ? "Link" : "Sign in with", "second", async ({ provider }) => {
  says.textContent = "Confirm in your wallet…";
  try {
    await signIn(provider);
    location.assign(place.dataset.wallet);
  } catch (error) {
    says.textContent = codeOf(error) === declined ? "You declined in your wallet." : (error?.message || "The wallet did not sign.");
  }
});

async function signIn(provider) {
  const [address] = await provider.request({ method: "eth_requestAccounts" });
  const chain = Number(await provider.request({ method: "eth_chainId" }));
  const purpose = linking ? "link" : "";
  const message = await text(await fetch("/console/sign-in/wallet-message", { method: "POST", body: new URLSearchParams({ address, chain, purpose }) }));
  const bytes = Array.from(new TextEncoder().encode(message), (byte) => byte.toString(16).padStart(2, "0"));
  const signature = await provider.request({ method: "personal_sign", params: [`0x${bytes.join("")}`, address] });
  const password = linking ? { password: document.getElementById("password")?.value } : {};
  await text(await fetch(linking ? "/auth/siwe/link" : "/auth/siwe/verify", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ message, signature, walletAddress: address, chainId: chain, ...password }),
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
