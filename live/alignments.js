// Chapter 08: where the GRU's decoder looked for each word of its translation.

import { arrowKeys, button, h, heat, menu, percent, weightTable } from "./lib/dom.js";

/**
 * @param {HTMLElement} element - where to.
 * @param {{sentences: {german: string[], english: string[], weights: number[][]}[]}} data - for each sentence the m German words, the
 *   n English ones that the model said, and its weights `(n, m)`.
 */
export function render(element, { sentences }) {
  let [sentence, row] = [0, 0];
  const [words, source, table] = [
    arrowKeys(h("div", { class: "live-pieces", role: "group", "aria-label": "The translation" })),
    h("div"),
    h("div"),
  ];
  const titles = sentences.map(({ german }) => german.filter((word) => !word.startsWith("<")).join(" "));
  element.append(
    menu("Sentence", titles, 0, (i) => {
      [sentence, row] = [i, 0];
      draw();
    }).row,
    h("p", { class: "live-key" }, "Choose an English word: the German words that it looked at take its colour."),
    words,
    source,
    table,
  );
  draw();

  function draw() {
    const { german, english, weights } = sentences[sentence];
    const choose = (i) => () => {
      if (row === i) return;
      row = i;
      look();
    };
    // A page that scrolls under a resting pointer makes it enter something: only one that moves chooses.
    words.replaceChildren(
      ...english.map((word, i) => button(word, choose(i), { onpointermove: choose(i), onfocus: choose(i) })),
    );
    table.replaceChildren(
      weightTable("Per cent of each English word's weight", english, german, weights, (i) => ({
        onpointermove: choose(i),
      })),
    );
    look();
  }

  function look() {
    const { german, english, weights } = sentences[sentence];
    for (const [i, one] of [...words.children].entries()) one.setAttribute("aria-pressed", String(i === row));
    const title = `Where it looked in the German for “${english[row]}”`;
    source.replaceChildren(
      h("p", { class: "live-title" }, title),
      h(
        "div",
        { class: "live-pieces", role: "group", "aria-label": title },
        german.map((word, j) =>
          h(
            "span",
            { class: "live-cell", style: heat(weights[row][j]) },
            word,
            h("small", {}, percent(weights[row][j])),
          ),
        ),
      ),
    );
  }
}
