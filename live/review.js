// Chapter 07: a review that the reader types; the shipped classifier judges it in the page, and words of it can be erased.

import { awaitModel } from "./lib/ask.js";
import { classify } from "./lib/classifier.js";
import { button, h, percent } from "./lib/dom.js";
import { cutReview } from "./lib/words.js";

const LABELS = ["negative", "positive"];
const EXAMPLES = ["It is not wonderful.", "The acting was good.", "Never boring, never dull, and over much too soon."];
const UNKNOWN = 0; // the number of each word that the classifier does not know

/**
 * @param {HTMLElement} element - where to.
 * @param {{reviews: ?string[], loadModel: function(): Promise<Uint8Array>}} data - reviews to click, the model's file.
 */
export async function render(element, data) {
  const examples = data.reviews ?? EXAMPLES;
  let [model, words, tokens, erased, whole, colours, reading] = [null, [], [], [], null, null, 0];

  const field = h("textarea", { rows: 4, lang: "en", maxlength: 20000, oninput: () => soon() });
  field.value = examples[0];
  const status = h("p", { class: "live-status", role: "status" });
  const told = h("p", { "aria-live": "polite" });
  const bars = h("ul", { class: "live-bars" });
  const text = h("div", { class: "live-review", role: "group", "aria-label": "The review: press a word to erase it" });
  const actions = [
    button("Colour each word by what erasing it alone does", measure),
    button("Colour each word by how much it is looked at", look),
    button("Bring all words back", () => {
      erased.fill(false);
      draw();
    }),
  ];
  element.append(
    h("div", { class: "live-form" }, h("label", {}, h("span", {}, "A review"), field)),
    h(
      "div",
      { class: "live-examples" },
      examples.map((review) =>
        button(
          review.length > 60 ? `${review.slice(0, 60)} …` : review,
          () => {
            field.value = review;
            judge();
          },
          { lang: "en" },
        ),
      ),
    ),
    status,
    bars,
    told,
    h("p", { class: "live-key" }, "Press a word to erase it, press it again to bring it back."),
    text,
    h("div", { class: "live-examples" }, actions),
  );
  model = await awaitModel("classifier", data.loadModel, status);
  judge();

  /** Judge when the reader pauses. */
  function soon() {
    reading += 1;
    const now = reading;
    setTimeout(() => now === reading && judge(), 150);
  }

  function judge() {
    if (!model) return;
    reading += 1;
    const all = cutReview(model.words, field.value);
    words = all.slice(-model.settings.max_len);
    tokens = words.map((word) => model.words.numbers.get(word) ?? UNKNOWN);
    erased = words.map(() => false);
    colours = null;
    const strangers = tokens.filter((token) => token === UNKNOWN).length;
    const nothing = words.length === 0 || strangers === words.length;
    status.textContent =
      words.length === 0
        ? "Type a review, in English."
        : nothing
          ? "It knows none of these words: type a review in English."
          : all.length > words.length
            ? `These are ${all.length} words; it reads the last ${words.length}.`
            : strangers
              ? `It does not know ${strangers} of these ${words.length} words: in italics.`
              : "";
    for (const action of actions) action.disabled = nothing;
    text.replaceChildren();
    bars.replaceChildren();
    told.textContent = "";
    if (nothing) return;
    whole = classify(model, tokens, erased);
    text.append(
      ...words.map((word, i) =>
        button(
          word,
          () => {
            erased[i] = !erased[i];
            draw();
          },
          { class: tokens[i] === UNKNOWN ? "unknown" : null },
        ),
      ),
    );
    draw();
  }

  async function measure() {
    const [now, found] = [reading, []];
    const sure = ({ chances }) => Math.log(chances[1]) - Math.log(chances[0]);
    for (let i = 0; i < words.length; i++) {
      const without = words.map((_, j) => i === j);
      found.push(words.length > 1 ? sure(whole) - sure(classify(model, tokens, without)) : sure(whole));
      told.textContent = `Erased ${i + 1} of ${words.length} words, one at a time …`;
      await new Promise((go) => setTimeout(go));
      if (now !== reading) return; // another review
    }
    colours = { values: found, key: `Blue speaks for “${LABELS[1]}”; orange and underlined for “${LABELS[0]}”.` };
    draw();
  }

  function look() {
    colours = { values: whole.looked, key: "The bluer, the more it is looked at, in the whole review." };
    draw();
  }

  function draw() {
    const gone = erased.filter(Boolean).length;
    const most = colours && Math.max(...colours.values.map(Math.abs));
    [...text.children].forEach((box, i) => {
      const value = colours?.values[i] ?? 0;
      const strength = colours ? Math.abs(value) / most : 0;
      box.setAttribute("aria-pressed", String(erased[i]));
      box.classList.toggle("erased", erased[i]);
      box.classList.toggle("against", value < 0 && strength > 0.1);
      const tone = value < 0 ? "--live-warm" : "--live-heat";
      box.style.background = `color-mix(in srgb, var(${tone}) ${(100 * strength).toFixed(0)}%, var(--live-paper))`;
    });
    if (gone === words.length) {
      bars.replaceChildren();
      told.textContent = "All words are erased: there is nothing to judge.";
      return;
    }
    const { chances } = gone ? classify(model, tokens, erased) : whole;
    bars.replaceChildren(
      ...LABELS.map((label, k) =>
        h(
          "li",
          {},
          h("span", {}, label),
          h(
            "span",
            { class: "bar", "aria-hidden": "true" },
            h("span", { style: `width: ${(100 * chances[k]).toFixed(1)}%` }),
          ),
          h("span", {}, percent(chances[k])),
        ),
      ),
    );
    const before = `${LABELS[1]} ${percent(chances[1])}`;
    told.textContent =
      (gone ? `${gone} of ${words.length} words erased: ${before}; with all words ${percent(whole.chances[1])}.` : "") +
      (colours ? ` ${colours.key}` : "");
  }
}
