// Chapter 07: a review whose words can be erased; the classifier reads what is left, here in the page.

import { button, h, percent } from "./lib/dom.js";
import { add, attend, feedForward, layerNorm, linear, softmax } from "./lib/transformer.js";

/**
 * @param {HTMLElement} element - where to.
 * @param {{words: string[], vectors: number[][], heads: number, blocks: object[], norm: object, classes: object, labels: ?string[]}} data -
 *   the n words; their vectors `(n, d)`, embedding and position added; the state of each pre-norm `TransformerBlock`, of the last norm and of
 *   the output layer, as PyTorch names them; what the classes are called.
 */
export function render(element, data) {
  const { words, heads } = data;
  const labels = data.labels ?? ["negative", "positive"];
  const vectors = data.vectors.map((vector) => Float32Array.from(vector));
  const blocks = data.blocks.map(tree);
  const [norm, classes] = [tree(data.norm), tree(data.classes)];
  const erased = words.map(() => false);
  let effects = null;

  const told = h("p", { "aria-live": "polite" });
  const bar = h("ul", { class: "live-bars" });
  const text = h("div", { class: "live-review", role: "group", "aria-label": "The review: press a word to erase it" });
  const boxes = words.map((word, i) =>
    button(word, () => {
      erased[i] = !erased[i];
      draw();
    }),
  );
  text.append(...boxes);
  const colour = button("Colour each word by what erasing it alone does", measure);
  element.append(
    h("p", { class: "live-key" }, "Press a word to erase it, press it again to bring it back."),
    text,
    bar,
    told,
    h(
      "div",
      { class: "live-examples" },
      colour,
      button("Bring all words back", () => {
        erased.fill(false);
        draw();
      }),
      button("Erase all words", () => {
        erased.fill(true);
        draw();
      }),
    ),
  );
  const whole = classify(erased);
  draw();

  /** The probability of each class when the words that are left look at each other alone: what padding would do. */
  function classify(without) {
    let x = vectors.filter((_, i) => !without[i]);
    for (const { norm_1, attention, norm_2, feed_forward } of blocks) {
      const normed = x.map((vector) => layerNorm(vector, norm_1));
      const keys = normed.map((vector) => linear(vector, attention.Wk));
      const values = normed.map((vector) => linear(vector, attention.Wv));
      x = x.map((vector, i) =>
        add(vector, linear(attend(linear(normed[i], attention.Wq), keys, values, heads).output, attention.WO)),
      );
      x = x.map((vector) => add(vector, feedForward(layerNorm(vector, norm_2), feed_forward)));
    }
    const mean = new Float32Array(vectors[0].length);
    for (const vector of x)
      layerNorm(vector, norm).forEach((value, c) => {
        mean[c] += value / x.length;
      });
    return [...softmax(linear(mean, classes))];
  }

  async function measure() {
    const sure = (p) => Math.log(p[1]) - Math.log(p[0]);
    const found = [];
    colour.disabled = true;
    for (let i = 0; i < words.length; i++) {
      found.push(sure(whole) - sure(classify(words.map((_, j) => i === j))));
      told.textContent = `Erased ${i + 1} of ${words.length} words, one at a time …`;
      await new Promise((go) => setTimeout(go));
    }
    effects = found;
    draw();
  }

  function draw() {
    const now = classify(erased);
    const most = effects && Math.max(...effects.map(Math.abs));
    boxes.forEach((box, i) => {
      box.setAttribute("aria-pressed", String(erased[i]));
      box.classList.toggle("erased", erased[i]);
      const strength = effects ? Math.abs(effects[i]) / most : 0;
      box.classList.toggle("against", Boolean(effects) && effects[i] < 0 && strength > 0.1);
      const tone = effects?.[i] < 0 ? "--live-warm" : "--live-heat";
      box.style.background = `color-mix(in srgb, var(${tone}) ${(100 * strength).toFixed(0)}%, var(--live-paper))`;
    });
    bar.replaceChildren(
      ...labels.map((label, k) =>
        h(
          "li",
          {},
          h("span", {}, label),
          h(
            "span",
            { class: "bar", "aria-hidden": "true" },
            h("span", { style: `width: ${(100 * now[k]).toFixed(1)}%` }),
          ),
          h("span", {}, percent(now[k])),
        ),
      ),
    );
    const gone = erased.filter(Boolean).length;
    told.textContent =
      `${gone ? `${gone} of ${words.length} words erased: ` : ""}${labels[1]} ${percent(now[1])}; with all words ${percent(whole[1])}.` +
      (effects ? ` Blue speaks for “${labels[1]}”; orange and underlined for “${labels[0]}”.` : "");
  }
}

/** `{"attention.Wq.weight": …}` as a tree of Float32Arrays. */
function tree(state) {
  const root = {};
  for (const [path, value] of Object.entries(state)) {
    const names = path.split(".");
    const last = names.pop();
    names.reduce((node, name) => (node[name] ??= {}), root)[last] = Float32Array.from(value.flat());
  }
  return root;
}
