// What a page can do better with scripts. Without them every page works, but for what only a wallet or a passkey can do.

// Copy buttons.
function offerCopies(root) {
  for (const button of root.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button.dataset.copy));
  }
}

async function copy(id) {
  const source = document.getElementById(id);
  const says = document.getElementById(`${id}-copied`);
  try {
    await navigator.clipboard.writeText(source.textContent);
    says.textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(source);
    says.textContent = "Selected; copy it with your keyboard.";
  }
}

// A button for each value of a list marked data-copies, which copies it.
function offerValues(root) {
  for (const value of root.querySelectorAll("[data-copies] code:not([id])")) {
    const row = value.closest("dl > div, li, tr");
    const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "Copy" });
    button.setAttribute("aria-label", `Copy ${row?.querySelector("dt")?.textContent ?? "the hash"}: ${value.textContent.slice(0, 10)}`);
    button.addEventListener("click", () => copyValue(value, button));
    (value.closest("a") ?? value).after(" ", button); // a button in a link would follow it
  }
}

async function copyValue(value, button) {
  try {
    await navigator.clipboard.writeText(value.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(value);
    button.textContent = "Selected";
  }
  said.textContent = `${button.textContent}.`;
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

// said is what a screen reader hears of a button without a place for it.
const said = Object.assign(document.createElement("p"), { className: "unseen" });
said.setAttribute("role", "status");
document.querySelector("main").append(said);

// Times in the time zone of the reader, in the format of the page, with UTC on hover.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const day = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const formats = {
  minute: new Intl.DateTimeFormat("en-GB", day),
  second: new Intl.DateTimeFormat("en-GB", { ...day, second: "2-digit" }),
};

function localize(root) {
  for (const time of root.querySelectorAll("time[data-local]")) {
    time.title = `${time.textContent} UTC`;
    time.textContent = formats[time.dataset.local].format(new Date(time.dateTime));
  }
}

function improve(root) {
  offerCopies(root);
  offerValues(root);
  localize(root);
}

improve(document);
const note = document.getElementById("zone");
if (note && zone && zone !== "UTC") note.textContent = `Times are in the time zone ${zone}, with UTC on hover; charts are in UTC.`;

// A form that must not be sent twice by a double click.
for (const form of document.querySelectorAll("form[data-once]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => delete form.dataset.sent);
}

// Scripts of single pages.
if (document.querySelector("[data-wallet]")) import("./sign-in.js");
if (document.querySelector("[data-passkey]")) import("./passkeys.js");
if (document.querySelector("[data-send], [data-report]")) import("./send.js");
if (document.querySelector("[data-sign]")) import("./sign.js");
if (document.querySelector("[data-left]")) import("./countdown.js");
if (document.querySelector("[data-units]")) import("./amounts.js");

// A page that keeps up: the parts marked data-live are taken from a fresh copy of it, every data-refresh seconds of the copy before while
// somebody looks at it, until a copy has no data-refresh. The answer to a form is not such a page.
const live = document.querySelector("[data-refresh]");
if (live && /^\/console\/[^/]+\/[^/]+$/.test(location.pathname)) {
  do {
    await new Promise((resolve) => { setTimeout(resolve, live.dataset.refresh * 1000); });
  } while (await refresh());
}

// refresh reports whether to go on. It does until the session or the page is gone.
async function refresh() {
  if (document.hidden) return true;
  let answer, body;
  try {
    answer = await fetch(location.pathname, { redirect: "manual" });
    body = await answer.text();
  } catch {
    return true;
  }
  if (!answer.ok) return answer.status >= 500;
  const fresh = new DOMParser().parseFromString(body, "text/html");
  const focused = document.querySelector("[data-live]:focus-within"); // replacing it would take the focus away
  for (const part of document.querySelectorAll("[data-live]")) {
    if (part !== focused) replace(part, fresh.querySelector(`[data-live="${part.dataset.live}"]`));
  }
  document.dispatchEvent(new CustomEvent("refreshed", { detail: fresh }));
  const next = fresh.querySelector("[data-refresh]");
  if (next) live.dataset.refresh = next.dataset.refresh;
  return focused !== null || next !== null;
}

function replace(part, fresh) {
  const open = new Set(Array.from(part.querySelectorAll("details[open]"), (details) => details.id));
  const replacement = document.importNode(fresh, true);
  for (const details of replacement.querySelectorAll("details")) details.open = open.has(details.id);
  improve(replacement);
  part.replaceChildren(...replacement.childNodes);
}
