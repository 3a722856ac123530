// Chapter 05: rotary positions as clocks. Each pair of features turns by its own angle per position; what two of them say to each
// other depends on their distance alone.

import { lineChart } from "./lib/chart.js";
import { h, number, slider } from "./lib/dom.js";

const FARTHEST = 40;

/**
 * @param {HTMLElement} element - where to.
 * @param {{dim: ?number, base: ?number, query: ?number[], key: ?number[]}} data - the size of a vector, even; the base of the
 *   frequencies; a query and a key `(dim,)`, by default all pairs (1, 0).
 */
export function render(element, data) {
  const dim = data.dim ?? data.query?.length ?? 12;
  const base = data.base ?? 10000;
  const query = data.query ?? Array.from({ length: dim }, (_, i) => 1 - (i % 2));
  const key = data.key ?? query;
  let [position, distance] = [3, 5];
  const speeds = Array.from({ length: dim / 2 }, (_, k) => base ** ((-2 * k) / dim));

  const [clocks, sum, chart] = [h("div", { class: "live-clocks" }), h("p", { "aria-live": "polite" }), h("div")];
  element.append(
    h(
      "div",
      { class: "live-controls" },
      slider("Position of the query", { min: 0, max: 60, step: 1, value: position }, String, (v) => {
        position = v;
        draw();
      }).row,
      slider("The key is so much later", { min: 0, max: FARTHEST, step: 1, value: distance }, String, (v) => {
        distance = v;
        draw();
      }).row,
    ),
    clocks,
    h(
      "p",
      { class: "live-key" },
      "One clock for each pair of features. Long hand: the query. Dashed hand: the key. Move the query: both hands turn, the angle between them stays.",
    ),
    sum,
    chart,
  );
  draw();

  function draw() {
    clocks.replaceChildren(...speeds.map((speed, k) => clock(speed, k)));
    const now = score(position, position + distance);
    sum.textContent = `Rotated query · rotated key = ${number(now)}, at positions ${position} and ${position + distance}. At 0 and ${distance} it is ${number(score(0, distance))}.`;
    const points = Array.from({ length: FARTHEST + 1 }, (_, d) => [d, score(0, d)]);
    const values = points.map((point) => point[1]);
    const [low, high] = [Math.min(...values, 0), Math.max(...values, 0)];
    const ticks = [low, 0, high].filter((v, i, all) => all.indexOf(v) === i).map((at) => ({ at, text: number(at, 1) }));
    chart.replaceChildren(
      lineChart(
        `The dot product is ${number(values[0], 1)} at distance 0 and ${number(now)} at distance ${distance}`,
        { x: "distance in positions", y: "dot product" },
        [{ points, kind: "main" }],
        { low, high, ticks },
        [distance, now],
      ),
    );
  }

  function clock(speed, k) {
    const hand = (vector, at, kind, length) => {
      const angle = Math.atan2(vector[2 * k + 1], vector[2 * k]) + at * speed;
      return h("line", {
        class: kind,
        x1: 0,
        y1: 0,
        x2: (length * Math.cos(angle)).toFixed(2),
        y2: (-length * Math.sin(angle)).toFixed(2),
      });
    };
    const turn = (2 * Math.PI) / speed;
    const text =
      turn < 1000 ? `a turn in ${number(turn, turn < 100 ? 1 : 0)}` : `a turn in ${Math.round(turn / 1000)} thousand`;
    return h(
      "figure",
      {},
      h(
        "svg",
        {
          viewBox: "-32 -32 64 64",
          role: "img",
          "aria-label": `features ${2 * k} and ${2 * k + 1}: ${text} positions`,
        },
        h("circle", { class: "face", r: 30 }),
        hand(key, position + distance, "second", 24),
        hand(query, position, "first", 28),
      ),
      h("figcaption", {}, `${2 * k}, ${2 * k + 1}`, h("small", {}, text)),
    );
  }

  /** `rotate` on both, then their dot product. */
  function score(queryAt, keyAt) {
    return speeds.reduce((total, speed, k) => {
      const [a, b] = turned(query, k, queryAt * speed);
      const [c, d] = turned(key, k, keyAt * speed);
      return total + a * c + b * d;
    }, 0);
  }
}

function turned(vector, k, angle) {
  const [a, b] = [vector[2 * k], vector[2 * k + 1]];
  return [a * Math.cos(angle) - b * Math.sin(angle), a * Math.sin(angle) + b * Math.cos(angle)];
}
