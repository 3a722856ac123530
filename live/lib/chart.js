// A line chart: axes with numbers, lines, and a mark for where one is.

import { h } from "./dom.js";

/**
 * @param {string} label - what the chart shows, for those who cannot see it.
 * @param {{x: string, y: string}} names - of the axes.
 * @param {{points: number[][], kind: string}[]} lines - each a list of [x, y] and a class: "main", "faint" or "second".
 * @param {{low: number, high: number, ticks: {at: number, text: string}[]}} scale - of the vertical axis.
 * @param {?number[]} mark - a point to mark.
 * @returns {SVGElement}
 */
export function lineChart(label, names, lines, scale, mark = null) {
  const [width, height, left, right, top, bottom] = [420, 270, 64, 14, 12, 48];
  const xs = lines.flatMap((line) => line.points.map((point) => point[0]));
  const [from, to] = [Math.min(...xs), Math.max(...xs)];
  const toX = (x) => left + ((x - from) / (to - from || 1)) * (width - left - right);
  const toY = (y) => height - bottom - ((y - scale.low) / (scale.high - scale.low || 1)) * (height - top - bottom);
  const path = (points) => `M${points.map(([x, y]) => `${toX(x).toFixed(1)},${toY(y).toFixed(1)}`).join("L")}`;
  const step = Math.max(1, Math.ceil((to - from) / 8));
  const xTicks = Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);
  return h(
    "svg",
    { class: "live-chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    scale.ticks.flatMap(({ at, text }) => [
      h("line", { class: "grid", x1: left, x2: width - right, y1: toY(at), y2: toY(at) }),
      h("text", { x: left - 6, y: toY(at) + 4, "text-anchor": "end" }, text),
    ]),
    xTicks.map((x) => h("text", { x: toX(x), y: height - bottom + 19, "text-anchor": "middle" }, String(x))),
    h("text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle" }, names.x),
    h("text", { x: -(height - bottom) / 2, y: 15, "text-anchor": "middle", transform: "rotate(-90)" }, names.y),
    lines.map((line) => h("path", { class: line.kind, d: path(line.points) })),
    mark ? h("circle", { class: "mark", cx: toX(mark[0]), cy: toY(mark[1]), r: 5 }) : null,
  );
}
