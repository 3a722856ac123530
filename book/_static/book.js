// The search page quotes from the pages it finds. It may fetch none where the book is opened as files, so what can be quoted is a
// script, in which nothing is folded: book/build.py writes it.
document.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  if (!results) return;
  const [, words, , marked] = Search._parseQuery(new URLSearchParams(location.search).get("q") ?? "");
  Search.htmlToText = (page, anchor) => {
    const parts = bookTexts[page] ?? [];
    return (anchor ? parts.filter(([id]) => id === anchor) : parts).map(([, text]) => text).join(" ");
  };
  const quote = (found) => {
    const [page, anchor] = found.querySelector("a").getAttribute("href").split("#");
    found.append(Search.makeSearchSummary(page, words, anchor) ?? "");
    for (const word of marked) _highlightText(found, word, "highlighted");
  };
  const start = () => {
    results.querySelectorAll("li").forEach(quote);
    new MutationObserver((changes) => {
      for (const one of changes.flatMap((change) => [...change.addedNodes])) if (one.tagName === "LI") quote(one);
    }).observe(results, { childList: true, subtree: true });
  };
  document.head.append(Object.assign(document.createElement("script"), { src: "_static/texts.js", onload: start }));
});

// What scrolls in its own box can be reached by keys, too. The theme sees to code and tables, whenever the window changes its
// size; this sees to figures and formulas, and to code that was folded.
document.addEventListener("DOMContentLoaded", () => {
  document.addEventListener("toggle", () => dispatchEvent(new Event("resize")), true);
  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
  });
  document.querySelectorAll(".cell_output:has(> img.wide), div.math").forEach((box) => watch.observe(box));
});
