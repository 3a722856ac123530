// Chapter 04: every head of every layer, small; the chosen one large, with words on its axes.

import { arrowKeys, button, fill, h, heat, percent, weightTable } from "./lib/dom.js";

/**
 * @param {HTMLElement} element - where to.
 * @param {{rows: ?string[], columns: ?string[], weights: number[][][][], largest: ?number}} data - weights `(layers, heads, n, m)`, or
 *   `(heads, n, m)` of one layer, from any model; the words of its rows (queries) and columns (keys); the weight with the darkest colour.
 */
export function render(element, data) {
  const layers = Array.isArray(data.weights[0][0][0]) ? data.weights : [data.weights];
  const [n, m] = [layers[0][0].length, layers[0][0][0].length];
  const rows = data.rows ?? Array.from({ length: n }, (_, i) => String(i));
  const columns = data.columns ?? data.rows ?? Array.from({ length: m }, (_, j) => String(j));
  const largest = data.largest ?? 1;
  let [layer, head, row] = [0, 0, 0];
  const [small, large, told] = [
    arrowKeys(h("div", { class: "live-small", role: "group", "aria-label": "All heads" })),
    h("div"),
    h("p", { "aria-live": "polite" }),
  ];
  for (const [l, heads] of layers.entries()) {
    for (const [k, weights] of heads.entries()) {
      const shapes = weights.flatMap((line, i) =>
        line.map((weight, j) => h("rect", { x: j, y: i, width: 1.02, height: 1.02, style: fill(weight / largest) })),
      );
      const picture = h(
        "svg",
        { viewBox: `0 0 ${m} ${n}`, preserveAspectRatio: "none", "aria-hidden": "true" },
        shapes,
      );
      small.append(
        button(
          "",
          () => {
            [layer, head] = [l, k];
            draw();
          },
          { "aria-label": `layer ${l}, head ${k}`, "data-at": `${l} ${k}` },
        ),
      );
      small.lastChild.append(
        picture,
        h("span", { "aria-hidden": "true" }, layers.length > 1 ? `${l} · ${k}` : `head ${k}`),
      );
    }
  }
  small.style.setProperty("--columns", Math.min(layers[0].length, 8));
  element.append(small, large, told);
  draw();

  function draw() {
    const weights = layers[layer][head];
    for (const one of small.children) one.setAttribute("aria-pressed", String(one.dataset.at === `${layer} ${head}`));
    const look = (i, j) => ({
      style: heat(weights[i][j] / largest),
      onpointerenter: () => {
        row = i;
        tell();
      },
    });
    large.replaceChildren(
      weightTable(`Layer ${layer}, head ${head}: per cent of each row's weight`, rows, columns, weights, look),
    );
    tell();
  }

  function tell() {
    const weights = layers[layer][head];
    const best = weights[row].indexOf(Math.max(...weights[row]));
    const sharp = weights.reduce((sum, line) => sum + Math.max(...line), 0) / n;
    told.textContent = `“${rows[row]}” looks most at “${columns[best]}” (${percent(weights[row][best])}). On average, a row of this head gives its favourite ${percent(sharp)}.`;
  }
}
