// Chapter 02: softmax at a temperature, from the largest alone to all alike.

import { button, h, number, percent, slider } from "./lib/dom.js";
import { softmax } from "./lib/transformer.js";

/**
 * @param {HTMLElement} element - where to.
 * @param {{words: ?string[], scores: ?number[], temperature: ?number}} data - n words and their scores.
 */
export function render(element, data) {
  const words = data.words ?? ["dog", "puppy", "cat", "car", "the"];
  const scores = data.scores ?? [3, 2.2, 1.5, -0.5, 0];
  const list = h("ul", { class: "live-bars" });
  const told = h("p", { "aria-live": "polite" });
  const say = (power) => number(10 ** power, power < 0 ? 2 : 1);
  const control = slider(
    "Temperature",
    { min: -1.5, max: 2, step: 0.05, value: Math.log10(data.temperature ?? 1) },
    say,
    draw,
  );
  const set = (temperature) => () => {
    control.input.value = Math.log10(temperature);
    control.input.dispatchEvent(new Event("input"));
  };
  element.append(
    control.row,
    h(
      "div",
      { class: "live-examples" },
      [0.05, 0.5, 1, 2, 50].map((t) => button(`T = ${t}`, set(t))),
    ),
    list,
    told,
  );
  draw(control.input.valueAsNumber);

  function draw(power) {
    const weights = softmax(scores.map((score) => score / 10 ** power));
    const entropy = weights.reduce((sum, w) => (w > 0 ? sum - w * Math.log(w) : sum), 0);
    list.replaceChildren(
      ...words.map((word, i) =>
        h(
          "li",
          {},
          h("span", {}, `${word} (${number(scores[i], 1)})`),
          h(
            "span",
            { class: "bar", "aria-hidden": "true" },
            h("span", { style: `width: ${(100 * weights[i]).toFixed(1)}%` }),
          ),
          h("span", {}, percent(weights[i])),
        ),
      ),
    );
    const most = words[weights.indexOf(Math.max(...weights))];
    told.textContent =
      entropy < 0.02
        ? `All the weight is on “${most}”: softmax has become argmax.`
        : entropy > Math.log(words.length) - 0.02
          ? "The scores hardly count any more: all weights are nearly the same."
          : `As unsure as between ${number(Math.exp(entropy), 1)} equal words (e to the entropy).`;
  }
}
