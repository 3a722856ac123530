// Chapter 00 and the first page of the book: the finished translator, and everything it looks at.

import { arrowKeys, button, h, heat, menu, number, percent, pieceText, slider, tick } from "./lib/dom.js";
import { askForGerman, loadTranslator, pieceRow, readSentence, sourcePieces } from "./lib/sentence.js";
import { beamSearch, EOS, greedyDecode, greedySteps, targetText } from "./lib/translate.js";
import { drawTree } from "./lib/tree.js";

const EXAMPLES = [
  "Zwei Kinder spielen am Strand mit einem großen Hund.",
  "Ein Junge schießt ein Tor.",
  "Eine Frau geht an einem Tor vorbei.",
  "Ein Mann schläft in einem grünen Raum auf einem Sofa.",
  "Drei Hunde rennen über eine verschneite Wiese.",
];
const MOST = 60; // tokens of a translation

/**
 * @param {HTMLElement} element - where to.
 * @param {{examples: ?string[], loadModel: function(): Promise<Uint8Array>}} data - sentences to click, the model's file.
 */
export async function render(element, data) {
  let model = null;
  let source = null;
  let steps = []; // what each step of greedy decoding took and where it looked
  let chosen = 0; // the step that is looked at
  let [layer, head] = [0, -1]; // head -1: the mean of all
  let [beam, run] = [3, 0];

  const { input, status, form, examples } = askForGerman(data.examples ?? EXAMPLES, translate);
  const english = arrowKeys(h("div", { class: "live-english" }));
  const plain = h("p", { class: "live-translation", lang: "en", "aria-live": "polite" });
  const compared = h("p", { class: "live-compared" });
  const [looks, controls, search] = [h("div"), h("div", { class: "live-controls" }), h("div")];

  let waiting = null;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(translate, 500);
  });
  element.append(form, examples, status, plain, compared);
  model = await loadTranslator(data.loadModel, status);
  if (!model) return;
  buildControls();
  element.append(
    h("p", { class: "live-title" }, "Word by word"),
    h(
      "p",
      { class: "live-key" },
      "Choose a piece of the translation: with the mouse, a finger, or Tab and the arrow keys.",
    ),
    english,
    looks,
    controls,
    h("p", { class: "live-title" }, "Several hypotheses at once: the beam"),
    slider("Beam width", { min: 1, max: 5, step: 1, value: beam }, String, (value) => {
      beam = value;
      drawSearch();
    }).row,
    search,
  );
  await translate();

  function buildControls() {
    const { depth, heads } = model.settings;
    const numbers = (count, name) => Array.from({ length: count }, (_, i) => `${name} ${i}`);
    const off = (kind) => (model.off[`${kind} ${layer}`] ??= new Set());
    const boxes = ["cross", "self"].map((kind) => {
      const name = kind === "cross" ? "Switch its look at the German off" : "Switch its look at the English off";
      return {
        kind,
        ...tick(name, false, (checked) => {
          for (const one of head < 0 ? Array(heads).keys() : [head])
            checked ? off(kind).add(one) : off(kind).delete(one);
          translate();
        }),
      };
    });
    const again = () => {
      for (const { kind, input: box } of boxes) box.checked = head < 0 ? off(kind).size === heads : off(kind).has(head);
      drawLooks();
    };
    layer = depth - 1;
    controls.append(
      menu("Layer", numbers(depth, "layer"), layer, (value) => {
        layer = value;
        again();
      }).row,
      menu("Head", ["all heads, mean", ...numbers(heads, "head")], 0, (value) => {
        head = value - 1;
        again();
      }).row,
      ...boxes.map((box) => box.row),
      button("All heads on again", () => {
        model.off = {};
        again();
        translate();
      }),
    );
  }

  async function translate() {
    clearTimeout(waiting);
    if (!model) return;
    const mine = ++run; // a newer sentence ends an older one
    source = readSentence(model, input.value, status);
    steps = [];
    chosen = 0;
    for (const part of [english, looks, search, compared, plain]) part.replaceChildren();
    if (!source) return;
    let painted = performance.now();
    for (const step of greedySteps(model, source, MOST)) {
      steps.push(step);
      plain.textContent = targetText(
        model,
        steps.map((one) => one.token),
      );
      if (performance.now() - painted < 40) continue;
      await new Promise((go) => setTimeout(go));
      painted = performance.now();
      if (mine !== run) return;
    }
    chosen = Math.min(1, steps.length - 1); // the first word tells little
    drawWords();
    drawLooks();
    await new Promise((go) => setTimeout(go)); // what costs more comes after what is seen first
    if (mine !== run) return;
    compareWithAllHeads();
    drawSearch();
  }

  function compareWithAllHeads() {
    const off = Object.entries(model.off).flatMap(([name, heads]) =>
      [...heads].map(
        (one) =>
          `${name.replace("cross", "cross-attention, layer").replace("self", "self-attention, layer")}, head ${one}`,
      ),
    );
    if (off.length === 0) return compared.replaceChildren();
    const saved = model.off;
    model.off = {};
    const whole = targetText(model, greedyDecode(model, source, MOST));
    model.off = saved;
    const same = whole === plain.textContent;
    const which = off.length > 3 ? `${off.length} heads` : off.join("; ");
    compared.replaceChildren(
      `Off: ${which}. `,
      same ? "The translation stays the same." : `With all heads on: ${whole}`,
    );
  }

  function drawWords() {
    const make = (piece, i) => {
      const look = () => {
        chosen = i;
        drawLooks();
      };
      return button(steps[i].token === EOS ? "end" : pieceText(piece), look, {
        onpointerenter: look,
        onfocus: look,
        "aria-pressed": "false",
      });
    };
    english.replaceChildren(
      pieceRow(
        "The translation, piece by piece",
        steps.map((one) => model.subwords.pieces[one.token]),
        make,
      ),
    );
  }

  /** Weights `(layers, heads, m)` as those of the chosen layer and head. */
  function weightsOf(all) {
    const chosenHeads = head < 0 ? all[layer] : [all[layer][head]];
    return chosenHeads[0].map((_, j) => chosenHeads.reduce((sum, one) => sum + one[j], 0) / chosenHeads.length);
  }

  function drawLooks() {
    for (const [i, one] of [...english.querySelectorAll("button")].entries())
      one.setAttribute("aria-pressed", String(i === chosen));
    const step = steps[chosen];
    if (!step) return;
    const pieces = model.subwords.pieces;
    const cell = (weight) => (piece) =>
      h(
        "span",
        { class: "live-cell", style: heat(weight), title: percent(weight) },
        pieceText(piece),
        h("small", {}, percent(weight)),
      );
    const row = (title, names, weights) => [
      h("p", { class: "live-title" }, title),
      pieceRow(title, names, (piece, i) => cell(weights[i])(piece)),
    ];
    const before = [2, ...steps.slice(0, chosen).map((one) => one.token)].map((token) => pieces[token]);
    const word = step.token === EOS ? "the end" : `“${pieceText(pieces[step.token])}”`;
    looks.replaceChildren(
      ...row(
        `Where it looked in the German for ${word}: cross-attention`,
        sourcePieces(model, source),
        weightsOf(step.cross),
      ),
      ...row("Where it looked in the English so far: the decoder's self-attention", before, weightsOf(step.self)),
      h("p", { class: "live-title" }, "What it thought of saying: the five likeliest next pieces"),
      h(
        "ul",
        { class: "live-bars" },
        step.candidates.map(({ token, probability }) =>
          h(
            "li",
            {},
            h("span", {}, token === EOS ? "end" : pieceText(pieces[token])),
            h(
              "span",
              { class: "bar", "aria-hidden": "true" },
              h("span", { style: `width: ${(100 * probability).toFixed(1)}%` }),
            ),
            h("span", {}, percent(probability)),
          ),
        ),
      ),
    );
  }

  function drawSearch() {
    if (!source) return;
    const found = beamSearch(model, source, beam, MOST);
    const ranked = [...found.last].sort((a, b) => b.score - a.score);
    search.replaceChildren(
      drawTree(found, (token) => model.subwords.pieces[token]),
      h(
        "p",
        { class: "live-key" },
        "Under each piece: the sum of log-probabilities so far. Thick: the winner. Dashed: looked at, then pruned.",
      ),
      h(
        "ol",
        {},
        ranked.map((one) =>
          h("li", {}, targetText(model, one.tokens), " ", h("small", {}, `score ${number(one.score)}`)),
        ),
      ),
    );
  }
}
