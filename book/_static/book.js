// The search page quotes from the pages it finds. It should not quote a solution that is still folded.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const toText = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    page.querySelectorAll("details").forEach((folded) => folded.remove());
    return toText(page.documentElement.outerHTML, anchor);
  };
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
