// Chapter 03: queries meet keys, a mask that the reader paints blocks pairs, and each row collects values.

import { button, h, heat, labelRoom, menu, number, percent } from "./lib/dom.js";
import { softmax } from "./lib/transformer.js";

/**
 * @param {HTMLElement} element - where to.
 * @param {{words: ?string[], queries: number[][], keys: number[][], values: ?number[][], pads: ?number}} data - of a sentence of n
 *   words queries and keys `(n, d)` and values `(n, d_v)`; how many words at its end are padding.
 */
export function render(element, data) {
  const { words, queries, keys, values } = data.queries ? data : EXAMPLE;
  const n = words.length;
  const pads = data.pads ?? words.filter((word) => word === "<pad>").length;
  let allowed = grid(() => true);
  let [row, painting] = [0, null];

  const body = h("tbody");
  const table = h(
    "table",
    { class: "live-weights live-mask", style: labelRoom(words) },
    h("caption", {}, "Weights in per cent. A row is a query, a column a key."),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("td"),
        words.map((word) => h("th", { scope: "col" }, h("span", {}, word))),
      ),
    ),
    body,
  );
  const cells = grid((i, j) => button("", () => {}, { class: "cell", onkeydown: (event) => move(event, i, j) }));
  cells.forEach((line, i) => {
    line.forEach((cell, j) => {
      const paint = () => {
        allowed[i][j] = painting;
        row = i;
        draw();
      };
      cell.addEventListener("pointerdown", (event) => {
        event.target.releasePointerCapture(event.pointerId); // so that a finger reaches the cells beside it, too
        painting = !allowed[i][j];
        paint();
      });
      cell.addEventListener("pointerenter", () => {
        if (painting !== null) paint();
      });
      cell.addEventListener("click", (event) => {
        if (event.detail === 0) {
          painting = !allowed[i][j];
          paint();
          painting = null;
        }
      }); // by key
    });
    body.append(
      h(
        "tr",
        {},
        h("th", { scope: "row" }, words[i]),
        line.map((cell) => h("td", {}, cell)),
      ),
    );
  });
  for (const name of ["pointerup", "pointercancel"])
    document.addEventListener(name, () => {
      painting = null;
    });

  const collected = h("div");
  const chooser = menu("Look at the row of", words, 0, (chosen) => {
    row = chosen;
    draw();
  });
  const preset = (name, rule) =>
    button(name, () => {
      allowed = grid(rule);
      draw();
    });
  element.append(
    h(
      "div",
      { class: "live-examples" },
      preset("All allowed", () => true),
      preset("Causal", (i, j) => j <= i),
      pads ? preset("No padding", (_, j) => j < n - pads) : null,
      pads ? preset("Both", (i, j) => j <= i && j < n - pads) : null,
      preset("Nothing allowed", () => false),
    ),
    h(
      "p",
      { class: "live-key" },
      "Paint the mask: press cells or draw over them; by key, arrows and Space. ✕ is blocked.",
    ),
    h("div", { class: "live-scroll", tabindex: 0, role: "region", "aria-label": "The mask and the weights" }, table),
    chooser.row,
    collected,
  );
  draw();

  function grid(make) {
    return Array.from({ length: words.length }, (_, i) => Array.from({ length: words.length }, (_, j) => make(i, j)));
  }

  function move(event, i, j) {
    const way = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!way) return;
    event.preventDefault();
    cells[i + way[0]]?.[j + way[1]]?.focus();
  }

  /** softmax(q·k / √d) over the keys that the mask allows; zeros where it allows none. */
  function weightsOf(i) {
    const scores = keys.map((key, j) => (allowed[i][j] ? dot(queries[i], key) / Math.sqrt(key.length) : -Infinity));
    return allowed[i].some(Boolean) ? softmax(scores) : scores.map(() => 0);
  }

  function draw() {
    chooser.input.selectedIndex = row;
    cells.forEach((line, i) => {
      const weights = weightsOf(i);
      line.forEach((cell, j) => {
        cell.textContent = allowed[i][j] ? Math.round(100 * weights[j]) : "✕";
        cell.setAttribute("style", heat(weights[j]));
        cell.setAttribute("aria-pressed", String(allowed[i][j]));
        cell.setAttribute(
          "aria-label",
          `${words[i]} may look at ${words[j]}: ${allowed[i][j] ? percent(weights[j]) : "blocked"}`,
        );
      });
    });
    const weights = weightsOf(row);
    const output = values?.[0].map((_, c) => weights.reduce((sum, w, j) => sum + w * values[j][c], 0));
    const shown = output?.length <= 8 ? ` Its output: (${output.map((v) => number(v)).join(", ")}).` : "";
    const parts = words
      .map((word, j) => [word, weights[j]])
      .filter(([, w]) => w >= 0.005)
      .sort((a, b) => b[1] - a[1]);
    collected.replaceChildren(
      h(
        "p",
        { "aria-live": "polite" },
        parts.length
          ? `“${words[row]}” collects ${parts.map(([word, w]) => `${percent(w)} of “${word}”`).join(", ")}.${shown}`
          : `“${words[row]}” may look at nothing: all its weights are 0, and so is its output. Not NaN.`,
      ),
    );
  }
}

function dot(a, b) {
  return a.reduce((sum, value, i) => sum + value * b[i], 0);
}

// (is an adjective, is a noun, is a verb) and a number for the word itself: adjectives and verbs look for the noun.
const EXAMPLE = {
  words: ["the", "grey", "cat", "sleeps", "<pad>"],
  queries: [
    [0, 2, 0],
    [0, 5, 0],
    [3, 1, 3],
    [0, 5, 1],
    [0, 0, 0],
  ],
  keys: [
    [0, 0, 0],
    [2, 0, 0],
    [0, 2, 0],
    [0, 0, 2],
    [1, 1, 1],
  ],
  values: [
    [1, 0, 0, 0],
    [0, 1, 0, 0],
    [0, 0, 1, 0],
    [0, 0, 0, 1],
    [0, 0, 0, 0],
  ],
};
