// What the pages can do better with scripts. Every page works without them.

// Copy buttons.
for (const pre of document.querySelectorAll("pre")) {
  const frame = document.createElement("div");
  frame.className = "code";
  pre.replaceWith(frame);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(pre);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  frame.append(button, pre);
}

// The language of a sample is that of all, and of the next page.
const languages = document.querySelectorAll(".samples > input");
const choose = (language) => {
  for (const input of languages) input.checked = input.value === language;
};
for (const input of languages) {
  input.addEventListener("change", () => {
    choose(input.value);
    localStorage.setItem("docs-language", input.value);
  });
}
const language = localStorage.getItem("docs-language");
if (Array.from(languages).some(({ value }) => value === language)) choose(language);

// An address of the time when /docs was one page: the index knows where its parts are now.
const anchor = decodeURIComponent(location.hash);
if (location.pathname === "/docs" && anchor && !document.getElementById(anchor.slice(1))) location.replace("/docs/search" + location.hash);

// Search: the page has the index, and what does not match is hidden.
const index = document.querySelector("#index");
if (index) {
  const part = anchor && index.querySelector(`a[href$="${CSS.escape(anchor)}"]`);
  if (part) location.replace(part.href);
  const entries = Array.from(index.children, (item) => ({
    item,
    title: item.querySelector("a").textContent.toLowerCase(),
    text: `${item.textContent} ${item.dataset.text ?? ""}`.toLowerCase(),
  }));
  const field = document.querySelector("#search");
  const found = document.querySelector("#found");
  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const all = (text) => words.every((word) => text.includes(word));
    const matches = entries.filter(({ text }) => all(text));
    const inTitle = matches.filter(({ title }) => all(title));
    for (const { item } of entries) item.hidden = true;
    for (const { item } of matches) item.hidden = false;
    index.prepend(...inTitle.map(({ item }) => item));
    found.textContent = words.length ? `${matches.length} ${matches.length === 1 ? "place has" : "places have"} these words.` : "Everything in the docs.";
  };
  field.value = new URLSearchParams(location.search).get("q") ?? "";
  field.addEventListener("input", show);
  show();
}
