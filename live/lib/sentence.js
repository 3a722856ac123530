// What a sentence goes through before the translator reads it, and what is said to the reader on the way.

import { ask, awaitModel } from "./ask.js";
import { h } from "./dom.js";
import { makeTranslator, sourceTokens } from "./translate.js";

const MOST_WORDS = 60;

// Words that bind a sentence together in one of the two languages and hardly occur in the other: not "in", "an", "die", "was".
const ENGLISH =
  listed(`the a of and is are his he she it with on to at by from for has have its that their them they there this
  these through up down out into while which wearing standing walking sitting two three some other near as my your you we not be
  been were do does what where how hello yes`);
const GERMAN =
  listed(`der das den dem des ein eine einen einem einer eines und oder ist sind mit auf im zu zum zur von vom vor für
  über unter bei beim aus nach durch gegen um ins sich nicht kein keine er sie es ich du wir ihr wie auch haben wird werden sein
  seine seinem seinen ihre ihrem ihren als während neben zwischen zwei drei dieser diese dieses welche wo viele einige`);

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
  if (looksEnglish(text))
    status.textContent = "This looks like English. It has only learned to read German, and takes it for German.";
  else
    status.textContent = strange
      ? "Some of these characters never occurred in its captions: it reads them as “unknown”."
      : "";
  return source;
}

/** Whether more of a text's words are English little words than are German ones or have a letter that English has not. */
export function looksEnglish(text) {
  const found = text.toLowerCase().match(/\p{L}+/gu) ?? [];
  const english = found.filter((word) => ENGLISH.has(word));
  const german = found.filter((word) => GERMAN.has(word) || /[äöüß]/.test(word));
  return english.length > german.length;
}

function listed(text) {
  return new Set(text.split(/\s+/));
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
