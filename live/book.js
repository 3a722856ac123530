// The book: puts each figure where the page has a place for it, and hides the picture that stood for it.

import { unpackData } from "./lib/tensors.js";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/**
 * Show every figure of the page: the elements with `data-figure`.
 *
 * @param {object} figures - modules by name, each with `render(element, data)`.
 * @param {string} folder - where the scripts of the models lie.
 */
export function startBook(figures, folder) {
  for (const place of document.querySelectorAll("[data-figure]")) {
    const show = () => {
      const data = unpackData(JSON.parse(place.querySelector("script").textContent));
      const still = place.querySelector(".live-still");
      const before = place.previousElementSibling ?? place.parentElement.previousElementSibling; // Sphinx puts a place into a box
      const canvas = document.createElement("div");
      canvas.className = "live";
      canvas.setAttribute("role", "group");
      canvas.setAttribute("aria-label", place.dataset.alt);
      place.append(canvas);
      figures[place.dataset.figure].render(canvas, {
        ...data,
        loadModel: () => loadModel(folder, place.dataset.model),
      });
      for (const picture of [still, place.dataset.still === "before" ? before : null])
        if (picture) picture.hidden = true;
    };
    if (place.dataset.model) whenNear(place, show);
    else show();
  }
}

/** Megabytes of weights are worth loading only for a reader who gets there. */
function whenNear(place, act) {
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      act();
    },
    { rootMargin: "300px" },
  );
  observer.observe(place);
}

const models = {};
const waiting = {};

/** A model's file: a script that calls `liveModel`, since a page that is a file may read scripts and nothing else. */
function loadModel(folder, name) {
  models[name] ??= new Promise((resolve, reject) => {
    globalThis.liveModel ??= (loaded, text) => waiting[loaded](fromBase85(text));
    waiting[name] = resolve;
    const script = document.createElement("script");
    script.src = `${folder}${name}.js`;
    script.onerror = () => reject(new Error(`${name}.js is missing`));
    document.head.append(script);
  });
  return models[name];
}

/** Five characters for four bytes, as Python's `base64.b85encode` writes them. */
function fromBase85(text) {
  const values = new Uint8Array(128);
  for (const [value, character] of [...ALPHABET].entries()) values[character.charCodeAt(0)] = value;
  const missing = (5 - (text.length % 5)) % 5;
  const bytes = new DataView(new ArrayBuffer(((text.length + missing) / 5) * 4));
  for (let i = 0, at = 0; i < text.length; at += 4) {
    let word = 0;
    for (let k = 0; k < 5; k++, i++) word = word * 85 + (i < text.length ? values[text.charCodeAt(i)] : 84);
    bytes.setUint32(at, word);
  }
  return new Uint8Array(bytes.buffer, 0, bytes.byteLength - missing);
}
