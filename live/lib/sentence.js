// What a sentence goes through before the translator reads it, and what is said to the reader on the way.

import { ask, awaitModel } from "./ask.js";
import { h } from "./dom.js";
import { makeTranslator, sourceTokens } from "./translate.js";

const MOST_WORDS = 60;

/** A field for a German sentence, as `ask` makes it. */
export function askForGerman(sentences, act) {
  return ask("German", "Translate", { lang: "de", maxlength: 5000 }, sentences, act);
}

/** Load the translator and say so; null, and a line that says why, if it does not come. */
export async function loadTranslator(loadModel, status) {
  const model = await awaitModel("translator", loadModel, status);
  return model && makeTranslator(model);
}

/**
 * A sentence as token numbers, or null and a kind line if there is nothing to translate.
 *
 * @param {object} model - from `makeTranslator`.
 * @param {string} text - what the reader typed.
 * @param {HTMLElement} status - where the line goes.
 */
export function readSentence(model, text, status) {
  const words = text.trim().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    status.textContent = "Type a German sentence, or choose an example.";
    return null;
  }
  if (words.length > MOST_WORDS) {
    status.textContent = `These are ${words.length} words. It learned from captions of about a dozen words: please give it ${MOST_WORDS} at most.`;
    return null;
  }
  const source = sourceTokens(model, text);
  if (source.length > 4 * MOST_WORDS) {
    status.textContent = "These words are too long for it: please give it a shorter sentence.";
    return null;
  }
  const strange = source.includes(model.subwords.unknown);
  status.textContent = strange ? "Some of these characters never occurred in its captions: it reads them as “unknown”." : "";
  return source;
}

/** The pieces that the encoder reads, with its two ends, as texts. */
export function sourcePieces(model, source) {
  return source.map((token) => model.subwords.pieces[token]);
}

/** A row of pieces, so close that one sees which belong to one word. */
export function pieceRow(label, pieces, make) {
  const children = pieces.map((piece, i) => {
    const child = make(piece, i);
    if (!piece.startsWith("▁") && !piece.startsWith("<")) child.classList.add("joined");
    return child;
  });
  return h("div", { class: "live-pieces", role: "group", "aria-label": label }, children);
}
