// Chapter 10: a beam search on a sentence that the reader types, drawn as a tree, beside greedy decoding.

import { h, number, slider } from "./lib/dom.js";
import { askForGerman, loadTranslator, readSentence } from "./lib/sentence.js";
import { beamSearch, greedyDecode, targetText } from "./lib/translate.js";
import { drawTree } from "./lib/tree.js";

const EXAMPLES = ["Ein Mann schläft auf einem Sofa.", "Eine Gruppe von Männern lädt Baumwolle auf einen Lastwagen."];

/**
 * @param {HTMLElement} element - where to.
 * @param {{examples: ?string[], beam: ?number, loadModel: function(): Promise<Uint8Array>}} data
 */
export async function render(element, data) {
  let model = null;
  const settings = { beam: data.beam ?? 3, penalty: 0.6, reward: 0 };
  const setting = (name) => (value) => {
    settings[name] = value;
    search();
  };
  const { input, status, form, examples } = askForGerman(data.examples ?? EXAMPLES, search);
  const result = h("div");

  element.append(
    form,
    examples,
    h(
      "div",
      { class: "live-controls" },
      slider("Beam width", { min: 1, max: 6, step: 1, value: settings.beam }, String, setting("beam")).row,
      slider(
        "Length penalty",
        { min: 0, max: 2, step: 0.1, value: settings.penalty },
        (v) => number(v, 1),
        setting("penalty"),
      ).row,
      slider(
        "Reward for each token",
        { min: 0, max: 1.6, step: 0.1, value: settings.reward },
        (v) => number(v, 1),
        setting("reward"),
      ).row,
    ),
    status,
    result,
  );
  model = await loadTranslator(data.loadModel, status);

  function search() {
    const source = model && readSentence(model, input.value, status);
    if (!source) return result.replaceChildren();
    const found = beamSearch(model, source, settings.beam, 60, settings.penalty, settings.reward);
    const pieceOf = (token) => model.subwords.pieces[token];
    const ranked = [...found.last].sort((a, b) => b.score - a.score);
    result.replaceChildren(
      h("p", {}, h("b", {}, "Greedy: "), targetText(model, greedyDecode(model, source, 60))),
      h("p", {}, h("b", {}, `Beam of ${settings.beam}: `), targetText(model, found.best.tokens)),
      drawTree(found, pieceOf),
      h(
        "p",
        { class: "live-key" },
        "Numbers: the sum of log-probabilities and rewards so far. Thick: the winner. Dashed: likely enough to be looked at, but pruned.",
      ),
      h(
        "ol",
        {},
        ranked.map((one) =>
          h(
            "li",
            {},
            `${targetText(model, one.tokens)} `,
            h("small", {}, `sum ${number(one.sum)}, with the length penalty ${number(one.score)}`),
          ),
        ),
      ),
    );
  }
  search();
}
