// What all figures share in which a reader types: a field with its button, sentences to click, a line that answers, and a
// model that has to come first.

import { button, h } from "./dom.js";
import { unpackModel } from "./weights.js";

/**
 * A field for a sentence: `{input, status, form, examples}`, the last three elements to append; `status` is the line that answers.
 *
 * @param {string} label - what is to be typed.
 * @param {string} action - what the button says.
 * @param {{lang: string, maxlength: number}} attributes - of the field.
 * @param {string[]} sentences - to click; the first one is in the field.
 * @param {function()} act - what to do with the sentence in the field.
 */
export function ask(label, action, attributes, sentences, act) {
  const input = h("input", { type: "text", value: sentences[0], ...attributes });
  const submit = (event) => {
    event.preventDefault();
    act();
  };
  const choose = (sentence) => () => {
    input.value = sentence;
    act();
  };
  return {
    input,
    status: h("p", { class: "live-status", role: "status" }),
    form: h(
      "form",
      { class: "live-form", onsubmit: submit },
      h("label", {}, h("span", {}, label), input),
      h("button", { type: "submit" }, action),
    ),
    examples: h(
      "div",
      { class: "live-examples" },
      sentences.map((sentence) => button(sentence, choose(sentence), { lang: attributes.lang })),
    ),
  };
}

/** Load a model and say so; null, and a line that says why, if it does not come. */
export async function awaitModel(name, loadModel, status) {
  status.textContent = `The ${name} is on its way … If it does not arrive, run this cell again.`;
  try {
    const model = await unpackModel(await loadModel());
    status.textContent = "";
    return model;
  } catch (error) {
    status.textContent = `The ${name} could not be loaded: ${error.message}.`;
    return null;
  }
}
