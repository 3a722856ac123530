// Chapter 06: how large the gradient is at each depth, for each way to initialise, with and without residuals and norm.

import { lineChart } from "./lib/chart.js";
import { h, menu } from "./lib/dom.js";

const NAMES = { initialisation: "Initialisation", residual: "Residual", norm: "Norm" };

/**
 * @param {HTMLElement} element - where to.
 * @param {{cases: {initialisation: string, residual: string, norm: string, gradients: number[]}[]}} data - for each case the
 *   gradient's norm at each depth, the input's first.
 */
export function render(element, { cases }) {
  const options = Object.fromEntries(Object.keys(NAMES).map((name) => [name, [...new Set(cases.map((one) => String(one[name])))]]));
  const chosen = Object.fromEntries(Object.keys(NAMES).map((name) => [name, options[name][0]]));
  const menus = Object.keys(NAMES).map((name) => menu(NAMES[name], options[name], 0, (i) => { chosen[name] = options[name][i]; draw(); }).row);
  const [chart, told] = [h("div"), h("p", { "aria-live": "polite" })];
  element.append(h("div", { class: "live-controls" }, menus), chart, told,
    h("p", { class: "live-key" }, "Thick: the case that is chosen. Faint: all others. Each step up is ten times as much."));
  const log = (value) => Math.log10(Math.max(value, 1e-38));
  const all = cases.flatMap((one) => one.gradients.map(log));
  const [low, high] = [Math.floor(Math.min(...all)), Math.ceil(Math.max(...all))];
  const step = Math.max(1, Math.ceil((high - low) / 7));
  const ticks = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, i) => low + i * step).map((at) => ({ at, text: power(at) }));
  draw();

  function draw() {
    const now = cases.find((one) => Object.keys(NAMES).every((name) => String(one[name]) === chosen[name]));
    const line = (one, kind) => ({ points: one.gradients.map((value, depth) => [depth, log(value)]), kind });
    const others = cases.filter((one) => one !== now).map((one) => line(one, "faint"));
    if (now) {
      const ratio = now.gradients[0] / now.gradients.at(-1);
      const times = ratio >= 1 ? `${short(ratio)} times as large as` : `${short(1 / ratio)} times smaller than`;
      told.textContent = `At the input the gradient is ${short(now.gradients[0])}, ${times} at the last layer (${short(now.gradients.at(-1))}).`;
    } else told.textContent = "This combination was not measured.";
    const lines = now ? [...others, line(now, "main")] : others;
    chart.replaceChildren(lineChart(told.textContent, { x: "depth (0: the input)", y: "size of the gradient" }, lines, { low, high, ticks }));
  }
}

function power(exponent) {
  const digits = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  return exponent === 0 ? "1" : `10${[...String(exponent)].map((c) => digits[c]).join("")}`;
}

function short(value) {
  if (value >= 0.01 && value < 10000) return String(Number(value.toPrecision(2)));
  const exponent = Math.floor(Math.log10(value));
  return `${(value / 10 ** exponent).toFixed(0)} · ${power(exponent)}`;
}
