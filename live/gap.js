// Chapter 12: a sentence with gaps; the body that has read reviews says what could fill them, from both sides.

import { ask, awaitModel } from "./lib/ask.js";
import { fillGaps } from "./lib/body.js";
import { h, percent, pieceText } from "./lib/dom.js";
import { encode } from "./lib/sentencepiece.js";
import { EOS } from "./lib/translate.js";

const MASK = 4;
const GAP = /_+/;
const MOST_GAPS = 3;
const SHOWN = 10; // pieces for each gap

/**
 * @param {HTMLElement} element - where to.
 * @param {{sentences: ?string[], loadModel: function(): Promise<Uint8Array>}} data - sentences to click, the model's file.
 */
export async function render(element, data) {
  const { input, status, form, examples } = ask(
    "Sentence with a gap, ___",
    "Fill",
    { lang: "en", maxlength: 3000 },
    data.sentences ?? ["the acting was ___.", "the acting was ___ and ruined the whole film.", "i ___ this film."],
    fill,
  );
  const result = h("div", { "aria-live": "polite" });
  element.append(form, examples, status, result);
  const model = await awaitModel("body", data.loadModel, status);
  fill();

  function fill() {
    if (!model) return;
    result.replaceChildren();
    const parts = input.value.toLowerCase().split(GAP);
    const texts = parts.map((part, i) => encode(model.subwords, part, i > 0 && !/^\s/.test(part))); // "___." has no space
    const tokens = [EOS, ...texts.flatMap((text, i) => (i ? [MASK, ...text] : text)), EOS];
    const [gaps, most] = [parts.length - 1, model.settings.max_len];
    const trouble =
      gaps === 0
        ? "Leave a gap, ___, where a word is to be guessed."
        : gaps > MOST_GAPS
          ? `These are ${gaps} gaps: leave at most ${MOST_GAPS}.`
          : tokens.length > most
            ? `These are ${tokens.length} pieces, and the body reads ${most} at once: shorten the text.`
            : "";
    const strange = tokens.includes(model.subwords.unknown);
    status.textContent =
      trouble || (strange ? "Some of these characters were in no review: it reads them as “unknown”." : "");
    if (trouble) return;
    const whole = fillGaps(model, tokens, MASK);
    const places = [...tokens.keys()].filter((i) => tokens[i] === MASK);
    result.append(
      ...whole.map((chances, k) =>
        showGap(
          gaps > 1 ? `Gap ${k + 1}` : "The gap",
          chances,
          fillGaps(model, tokens.slice(0, places[k] + 1), MASK)[k],
        ),
      ),
    );
  }

  function showGap(name, chances, before) {
    const likely = [...chances.keys()].sort((a, b) => chances[b] - chances[a]).slice(0, SHOWN);
    return h(
      "div",
      {},
      h(
        "p",
        { class: "live-title" },
        `${name}: the ${SHOWN} likeliest of ${chances.length.toLocaleString("en")} pieces; in small print, from the left side alone`,
      ),
      h(
        "ul",
        { class: "live-bars" },
        likely.map((token) =>
          h(
            "li",
            {},
            h("span", {}, token === EOS ? "end" : pieceText(model.subwords.pieces[token])),
            h(
              "span",
              { class: "bar", "aria-hidden": "true" },
              h("span", { style: `width: ${(100 * chances[token]).toFixed(1)}%` }),
            ),
            h("span", {}, percent(chances[token])),
            h("small", {}, `left ${percent(before[token])}`),
          ),
        ),
      ),
    );
  }
}
