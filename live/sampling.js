// Chapter 11: the caption model writes in the page; temperature, top-k and top-p decide how bold it is.

import { ask, awaitModel } from "./lib/ask.js";
import { button, h, number, percent, pieceText, slider } from "./lib/dom.js";
import { allowedTokens, draw, languageStep, seeded } from "./lib/language.js";
import { decode, encode } from "./lib/sentencepiece.js";
import { BOS, EOS } from "./lib/translate.js";

const MOST = 40; // tokens of a caption
const SHOWN = 8; // tokens in the list of the next ones

/**
 * @param {HTMLElement} element - where to.
 * @param {{prompts: ?string[], loadModel: function(): Promise<Uint8Array>}} data - beginnings to click, the model's file.
 */
export async function render(element, data) {
  const rules = { temperature: 0.7, topK: 0, topP: 0.9 };
  let [model, seed] = [null, 1];
  const { input, status, form, examples } = ask(
    "Beginning of a caption",
    "Write",
    { lang: "en", maxlength: 2000 },
    data.prompts ?? ["A man", "Two dogs", "A little girl in a"],
    write,
  );
  const [written, next] = [h("ol", { "aria-live": "polite" }), h("div")];
  const set = (name) => (value) => {
    rules[name] = value;
    write();
  };
  examples.append(
    button("Draw anew", () => {
      seed += 1;
      write();
    }),
  );
  element.append(
    form,
    examples,
    h(
      "div",
      { class: "live-controls" },
      slider(
        "Temperature",
        { min: 0, max: 2, step: 0.05, value: rules.temperature },
        (v) => number(v),
        set("temperature"),
      ).row,
      slider("top-k", { min: 0, max: 100, step: 1, value: rules.topK }, (v) => (v ? String(v) : "all"), set("topK"))
        .row,
      slider("top-p", { min: 0.05, max: 1, step: 0.05, value: rules.topP }, (v) => number(v), set("topP")).row,
    ),
    status,
    written,
    next,
  );
  model = await awaitModel("caption model", data.loadModel, status);
  write();

  function write() {
    if (!model) return;
    const { subwords } = model;
    const prompt = [BOS, ...encode(subwords, input.value)];
    const tooLong = prompt.length > MOST;
    status.textContent = tooLong
      ? "That is a whole text. Please begin a caption with a few words."
      : prompt.includes(subwords.unknown)
        ? "Some of these characters never occurred in its captions: it reads them as “unknown”."
        : "";
    written.replaceChildren();
    next.replaceChildren();
    if (tooLong) return;
    let [cache, logits] = [null, null];
    for (const token of prompt) ({ logits, cache } = languageStep(model, cache, token));
    showNext(logits);
    const random = seeded(seed);
    for (let i = 0; i < 4; i++)
      written.append(h("li", {}, decode(subwords, [...prompt, ...finish(logits, cache, random)])));
  }

  function finish(logits, cache, random) {
    const tokens = [];
    while (tokens.length < MOST) {
      const token = draw(allowed(logits), random);
      if (token === EOS) break;
      tokens.push(token);
      ({ logits, cache } = languageStep(model, cache, token));
    }
    return tokens;
  }

  function allowed(logits) {
    return allowedTokens(logits, { ...rules, topK: rules.topK || logits.length });
  }

  function showNext(logits) {
    const [now, before] = [allowed(logits), allowedTokens(logits, { temperature: 1, topK: logits.length, topP: 1 })];
    next.replaceChildren(
      h("p", { class: "live-title" }, `The next token: ${now.length} of ${logits.length} may be drawn`),
      h(
        "ul",
        { class: "live-bars" },
        before.slice(0, SHOWN).map(({ token, probability }) => {
          const kept = now.find((one) => one.token === token)?.probability ?? 0;
          return h(
            "li",
            {},
            h("span", {}, token === EOS ? "end" : pieceText(model.subwords.pieces[token])),
            h(
              "span",
              { class: "bar", "aria-hidden": "true" },
              h("span", { style: `width: ${(100 * kept).toFixed(1)}%` }),
            ),
            h("span", {}, percent(kept)),
            h("small", {}, `was ${percent(probability)}`),
          );
        }),
      ),
    );
  }
}
