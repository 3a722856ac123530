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
