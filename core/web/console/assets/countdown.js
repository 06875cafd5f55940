// What is left of the times that a page counts down: each [data-left] has the seconds that were left when the service wrote it, so that the
// clock of this browser may be wrong.

const ends = new WeakMap();

function show() {
  for (const timer of document.querySelectorAll("[data-left]")) { // a page that keeps up gets new ones
    if (!ends.has(timer)) ends.set(timer, Date.now() + timer.dataset.left * 1000);
    const left = Math.ceil((ends.get(timer) - Date.now()) / 1000);
    timer.textContent = left <= 0 ? "has run out" : left < 120 ? `${left} s left` : `${Math.floor(left / 60)} minutes left`;
    if (left <= 0) announce();
  }
}

// announce says once what a time that has run out means, to screen readers too.
function announce() {
  const says = document.querySelector("[data-ended]");
  if (says && !says.textContent) says.textContent = says.dataset.ended;
}

setInterval(show, 1000);
show();
