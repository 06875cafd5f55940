// The checks of an intent's transaction, which are a page of their own, in the page of the intent.
import { Failure } from "./transaction.js";

const place = document.querySelector("[data-preflight]");

// load shows the checks as they are now and returns their data attributes, or null where they cannot be made.
async function load() {
  try {
    const answer = await fetch(place.dataset.preflight);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const checks = page.getElementById("checks");
    if (checks) {
      place.replaceChildren(...document.importNode(checks, true).childNodes);
      return Array.from(place.querySelectorAll("[data-check]"), (check) => check.dataset);
    }
    place.textContent = page.querySelector("main [role=alert] p")?.textContent ?? "The checks cannot be made at this moment.";
  } catch {
    place.textContent = "The checks cannot be made at this moment.";
  }
  return null;
}

// showChecks puts the checks in the page.
export async function showChecks() {
  if (place) await load();
}

// granted reports whether the allowance is in place, and fails where a check is not ok.
export async function granted() {
  const checks = place ? await load() : null;
  if (!checks) return false;
  const wrong = checks.filter(({ ok }) => ok !== "true").map(({ check }) => check);
  if (wrong.length > 0) throw new Failure(`The checks above say that it would fail: ${wrong.join(", ")}. Nothing was sent.`);
  return checks.every(({ needed }) => needed !== "true");
}
