// Chapter 06: how large the gradient is at the input of a deep stack, and how far apart its outputs stay, for several kinds of
// layers and initial weights, with and without residuals and norm.

import { lineChart } from "./lib/chart.js";
import { h, menu, number } from "./lib/dom.js";

const NAMES = { layers: "Layers", initialisation: "Initialisation", residual: "Residual", norm: "Norm" };
const [LEAST, MOST] = [1e-30, 1e30]; // what is smaller, or larger, is not told apart

/**
 * @param {HTMLElement} element - where to.
 * @param {{depths: number[], cases: {layers: string, initialisation: string, residual: string, norm: string, gradients: number[], spreads: number[]}[]}} data -
 *   how many layers the stacks have; for each case and depth the gradient at the input, of a gradient of size 1 at the output, and the
 *   spread of the outputs, 0 to 1.
 */
export function render(element, { depths, cases }) {
  const options = Object.fromEntries(
    Object.keys(NAMES).map((name) => [name, [...new Set(cases.map((one) => String(one[name])))]]),
  );
  const chosen = Object.fromEntries(Object.keys(NAMES).map((name) => [name, options[name][0]]));
  const menus = Object.keys(NAMES).map(
    (name) =>
      menu(NAMES[name], options[name], 0, (i) => {
        chosen[name] = options[name][i];
        draw();
      }).row,
  );
  const [charts, told] = [h("div", { class: "live-charts" }), h("p", { "aria-live": "polite" })];
  element.append(
    h("div", { class: "live-controls" }, menus),
    told,
    charts,
    h(
      "p",
      { class: "live-key" },
      "Thick: the case that is chosen. Faint: all others. The gradient's axis goes up in powers of ten.",
    ),
  );
  const log = (value) => Math.log10(Math.min(Math.max(value, LEAST), MOST));
  const all = cases.flatMap((one) => one.gradients.map(log));
  const [low, high] = [Math.floor(Math.min(...all)), Math.ceil(Math.max(...all))];
  const step = Math.max(1, Math.ceil((high - low) / 7));
  const from = Math.ceil(low / step) * step; // so that 1 is on the axis
  const ticks = Array.from({ length: Math.floor((high - from) / step) + 1 }, (_, i) => from + i * step).map((at) => ({
    at,
    text: power(at),
  }));
  const parts = [0, 0.5, 1].map((at) => ({ at, text: String(at) }));
  draw();

  function draw() {
    const now = cases.find((one) => Object.keys(NAMES).every((name) => String(one[name]) === chosen[name]));
    if (now) {
      told.textContent =
        `Through ${depths.at(-1)} layers, a gradient of size 1 at the output arrives at the input as ${short(now.gradients.at(-1))}; ` +
        `the outputs of different inputs keep a spread of ${number(now.spreads.at(-1))}.`;
    } else told.textContent = "This combination was not measured.";
    const lines = (values) => {
      const line = (one, kind) => ({ points: depths.map((depth, i) => [depth, values(one)[i]]), kind });
      const others = cases.filter((one) => one !== now).map((one) => line(one, "faint"));
      return now ? [...others, line(now, "main")] : others;
    };
    charts.replaceChildren(
      lineChart(
        `The gradient at the input by the number of layers. ${told.textContent}`,
        { x: "layers", y: "gradient at the input" },
        lines((one) => one.gradients.map(log)),
        { low, high, ticks },
      ),
      lineChart(
        `The spread of the outputs by the number of layers. ${told.textContent}`,
        { x: "layers", y: "spread of the outputs" },
        lines((one) => one.spreads),
        { low: 0, high: 1, ticks: parts },
      ),
    );
  }
}

function power(exponent) {
  const digits = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  return exponent === 0 ? "1" : `10${[...String(exponent)].map((c) => digits[c]).join("")}`;
}

function short(value) {
  if (value <= LEAST) return `less than ${power(Math.log10(LEAST))}`;
  if (value >= MOST) return `more than ${power(Math.log10(MOST))}`;
  if (value >= 0.01 && value < 10000) return String(Number(value.toPrecision(2)));
  const exponent = Math.floor(Math.log10(value));
  return `${(value / 10 ** exponent).toFixed(0)} · ${power(exponent)}`;
}
