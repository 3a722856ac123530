// The tree that a beam search grows: kept hypotheses, and the next likeliest, which were pruned.

import { h, number, pieceText } from "./dom.js";

const WIDTH = 92;
const HEIGHT = 46;

/**
 * Draw a search.
 *
 * @param {{best: object, last: object[], steps: {kept: object[], pruned: object[]}[]}} found - from `beamSearch`.
 * @param {function(number): string} pieceOf - the piece of a token number.
 * @returns {HTMLElement} the tree, which scrolls sideways in its own box.
 */
export function drawTree({ best, last, steps }, pieceOf) {
  const places = new Map(); // hypothesis → [x, y]
  const winners = new Set();
  for (let one = best; one; one = one.parent) winners.add(one);
  const [lines, boxes] = [[], []];
  let rows = 1;
  steps.forEach(({ kept, pruned }, step) => {
    [...kept, ...pruned].forEach((one, row) => {
      if (one.parent?.ended) {
        // it stands as it is: nothing new to draw
        places.set(one, places.get(one.parent));
        return;
      }
      const place = [16 + step * WIDTH, row * HEIGHT + 2];
      places.set(one, place);
      rows = Math.max(rows, row + 1);
      const kind = winners.has(one) ? "best" : kept.includes(one) ? "kept" : "pruned";
      const [fromX, fromY] = places.get(one.parent) ?? [16 - WIDTH, 2];
      const start = [fromX + WIDTH - 16, fromY + 18];
      lines.push(
        h("path", {
          class: kind,
          d: `M${start} C${start[0] + 10},${start[1]} ${place[0] - 10},${place[1] + 18} ${place[0]},${place[1] + 18}`,
        }),
      );
      const piece = one.ended ? "end" : pieceOf(one.tokens.at(-1)).replace("▁", "") || "␣";
      boxes.push(
        h(
          "g",
          { class: kind, transform: `translate(${place})` },
          h("title", {}, `${one.tokens.map((t) => pieceText(pieceOf(t))).join(" ")}: ${number(one.sum)}`),
          h("rect", { width: WIDTH - 16, height: 36, rx: 5 }),
          h("text", { x: 6, y: 15 }, piece.length > 10 ? `${piece.slice(0, 9)}…` : piece),
          h("text", { x: 6, y: 30, class: "sum" }, number(one.sum)),
        ),
      );
    });
  });
  const [width, height] = [steps.length * WIDTH + 18, rows * HEIGHT + 2];
  const label = `The tree of a beam search of ${steps.length} steps; ${last.length} hypotheses remain, listed below`;
  const drawing = h(
    "svg",
    { class: "live-tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    lines,
    boxes,
  );
  return h(
    "div",
    { class: "live-scroll", tabindex: 0, role: "region", "aria-label": "The tree of hypotheses" },
    drawing,
  );
}
