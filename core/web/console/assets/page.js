// What the scripts of an intent's pages share: reading a fresh copy of the page, and saying what went wrong.
import { Failure, codeOf, declined } from "./transaction.js";

export const parse = (text) => new DOMParser().parseFromString(text, "text/html");

// alertOf is what a page says is wrong.
export const alertOf = (page) => page.querySelector(".problems li, main [role=alert] p")?.textContent;

// current is what the page has in this data attribute, as the service gives it now: a page may have been open for long. ended says what it means
// that the page has none any more, and outcome what was done until then.
export async function current(attribute, ended, outcome) {
  const answer = await fetch(location.pathname).catch(() => { throw new Failure(`The service does not answer. ${outcome}`); });
  if (new URL(answer.url).pathname.startsWith("/console/sign-in")) throw new Failure(`Your session has ended. Load the page again and sign in. ${outcome}`);
  const page = parse(await answer.text());
  const fresh = page.querySelector(`[data-${attribute}]`);
  if (fresh) return JSON.parse(fresh.dataset[attribute]);
  throw new Failure(`${alertOf(page) ?? ended} ${outcome}`);
}

// explain is an error in words.
export function explain(error, outcome) {
  if (error instanceof Failure) return error.message;
  if (codeOf(error) === declined) return `You declined in the wallet; ${outcome}.`;
  if (codeOf(error) === -32002) return "The wallet has a request that waits for you. Answer it there, then try again.";
  return `The wallet did not go on: ${error?.message || "it gave no reason"}`;
}
