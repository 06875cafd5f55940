// Passkeys (WebAuthn level 3): signing in, confirming the session, and adding one to the account that is signed in.

const place = document.querySelector("[data-passkey]");
const says = document.getElementById("passkey-says");
const button = place.querySelector("button");
const purpose = place.dataset.passkey;
const known = typeof PublicKeyCredential === "function" && "parseCreationOptionsFromJSON" in PublicKeyCredential;

// A request in the browser's list of passwords waits until the button is pressed.
let waiting = new AbortController();

if (known) {
  place.hidden = false;
  button.addEventListener("click", press);
  if (purpose === "sign-in" && await PublicKeyCredential.isConditionalMediationAvailable?.()) offer();
} else {
  says.textContent = "This browser knows no passkeys.";
}

async function press() {
  button.disabled = true;
  says.textContent = "Confirm on your device…";
  waiting.abort();
  waiting = new AbortController();
  try {
    await (purpose === "add" ? add() : authenticate({}));
    location.assign(place.dataset.next);
  } catch (error) {
    says.textContent = reason(error);
  } finally {
    button.disabled = false;
  }
}

// offer has the browser name passkeys where the e-mail address is typed.
async function offer() {
  try {
    await authenticate({ mediation: "conditional" });
    location.assign(place.dataset.next);
  } catch (error) {
    if (error.name !== "AbortError") says.textContent = reason(error);
  }
}

async function authenticate(how) {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await ask("generate-authenticate-options"));
  const credential = await navigator.credentials.get({ publicKey, signal: waiting.signal, ...how });
  await ask("verify-authentication", { response: credential.toJSON() });
}

async function add() {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(await ask("generate-register-options"));
  const credential = await navigator.credentials.create({ publicKey, signal: waiting.signal });
  const name = document.getElementById("passkey-name").value.trim();
  await ask("verify-registration", { response: credential.toJSON(), ...(name && { name }) });
}

// ask is the JSON of a good answer; any other is an error in the service's words.
async function ask(path, body) {
  const init = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(`/auth/passkey/${path}`, init);
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.message);
  return said;
}

function reason(error) {
  switch (error.name) {
    case "NotAllowedError": return "It was not confirmed on your device.";
    case "InvalidStateError": return "This device has a passkey for your account already.";
    default: return error.message || "It did not work.";
  }
}
