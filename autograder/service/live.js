// Fetches the page again and again, and shows what has changed in it. What is open stays open, and nothing moves under
// whoever is marking text.
const main = document.querySelector("main");
const now = document.querySelector("#now");
let shown = main.innerHTML;

function place(element) {
  const within = element.closest("[id]");
  return within && main.contains(within) ? [within.id, element.tagName] : null;
}

async function look() {
  if (document.hidden || !getSelection().isCollapsed) return;
  let answer;
  try {
    answer = await fetch(location.pathname, { cache: "no-store", redirect: "error" });
  } catch {
    now.textContent = "The server does not answer; what stands here is of before.";
    return;
  }
  if (answer.status >= 500) {
    now.textContent = "The server has trouble now; what stands here is of before.";
    return;
  }
  if (!answer.ok) return location.reload();
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector("main");
  now.textContent = page.querySelector("#now").textContent;
  if (fresh.innerHTML === shown) return;
  shown = fresh.innerHTML;
  const open = [...main.querySelectorAll("details[id]")].filter((one) => one.open).map((one) => one.id);
  const focus = place(document.activeElement);
  main.replaceChildren(...fresh.childNodes);
  main.dataset.again = fresh.dataset.again;
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focus) {
    const within = document.getElementById(focus[0]);
    (within?.tagName === focus[1] ? within : within?.querySelector(focus[1]))?.focus();
  }
}

function wait() {
  setTimeout(async () => {
    await look();
    wait();
  }, 1000 * main.dataset.again);
}
wait();
