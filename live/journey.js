// Chapter 09: the data's way through the encoder, the decoder and the three kinds of attention, with shapes.

import { button, h, slider } from "./lib/dom.js";

/**
 * @param {HTMLElement} element - where to.
 * @param {{source: ?string[], target: ?string[], dim: ?number, heads: ?number, hidden: ?number, vocabulary: ?number}} data - the m source
 *   tokens, the n target tokens, and the sizes of the model.
 */
export function render(element, data) {
  const source = data.source ?? ["<s>", "ein", "Hund", "rennt", "</s>"];
  const target = data.target ?? ["<s>", "a", "dog", "runs"];
  const { dim = 128, heads = 4, hidden = 512, vocabulary = 3000 } = data;
  const [m, n, size] = [source.length, target.length, dim / heads];
  const shape = (...sizes) => `(1, ${sizes.join(", ")})`;

  // Each stop: the boxes that light up, what happens, the shape of what comes out.
  const stops = [
    [["source"], `The source: ${source.join(" ")}`, "source", shape(m)],
    [
      ["embed-source"],
      "Each token becomes a vector times √d, plus its position.",
      "embedder(source) + positions",
      shape(m, dim),
    ],
    [
      ["encoder-self"],
      "Encoder self-attention: queries, keys and values all come from the source. Nothing is hidden but padding.",
      "weights of Wq(x), Wk(x)",
      `queries, keys, values ${shape(heads, m, size)} → weights ${shape(heads, m, m)} → ${shape(m, dim)}`,
    ],
    [
      ["encoder-ff"],
      "A feed-forward network, the same at every position.",
      "feed_forward(x)",
      `${shape(m, dim)} → ${shape(m, hidden)} → ${shape(m, dim)}`,
    ],
    [
      ["memory"],
      "After all layers and a last norm: the memory, one vector for each source token. It is computed once.",
      "encode(source)",
      shape(m, dim),
    ],
    [["target"], `The target so far: ${target.join(" ")}`, "target", shape(n)],
    [["embed-target"], "Embedded in the same way.", "embedder(target) + positions", shape(n, dim)],
    [
      ["decoder-self"],
      "Decoder self-attention: queries, keys and values come from the target. The mask hides what is later.",
      "weights of Wq(x), Wk(x), causal",
      `queries, keys, values ${shape(heads, n, size)} → weights ${shape(heads, n, n)} → ${shape(n, dim)}`,
    ],
    [
      ["cross", "arrow"],
      "Cross-attention: the target asks, the source answers. Queries from the decoder, keys and values from the memory.",
      "weights of Wq(x), Wk(memory)",
      `queries ${shape(heads, n, size)}, keys, values ${shape(heads, m, size)} → weights ${shape(heads, n, m)} → ${shape(n, dim)}`,
    ],
    [
      ["decoder-ff"],
      "A feed-forward network, the same at every position.",
      "feed_forward(x)",
      `${shape(n, dim)} → ${shape(n, hidden)} → ${shape(n, dim)}`,
    ],
    [
      ["output"],
      "The tied output: a score for every word of the vocabulary, at each position. The last row says the next word.",
      "x @ embedding.weight.T",
      shape(n, vocabulary),
    ],
  ];
  const boxes = [
    ["source", 10, 300, "source", `(1, ${m})`],
    ["embed-source", 10, 245, "embed + position", shape(m, dim)],
    ["encoder-self", 10, 175, "self-attention", shape(heads, m, m)],
    ["encoder-ff", 10, 120, "feed-forward", shape(m, dim)],
    ["memory", 10, 50, "memory", shape(m, dim)],
    ["target", 240, 355, "target", `(1, ${n})`],
    ["embed-target", 240, 300, "embed + position", shape(n, dim)],
    ["decoder-self", 240, 230, "causal self-attention", shape(heads, n, n)],
    ["cross", 240, 160, "cross-attention", shape(heads, n, m)],
    ["decoder-ff", 240, 105, "feed-forward", shape(n, dim)],
    ["output", 240, 35, "output", shape(n, vocabulary)],
  ];
  const shapes = boxes.map(([name, x, y, title, size]) =>
    h(
      "g",
      { "data-box": name, transform: `translate(${x} ${y})` },
      h("rect", { width: 170, height: 42, rx: 6 }),
      h("text", { x: 85, y: 18, "text-anchor": "middle" }, title),
      h("text", { class: "size", x: 85, y: 34, "text-anchor": "middle" }, size),
    ),
  );
  const up = (x, from, to) => h("path", { class: "way", d: `M${x},${from}V${to + 3}m-4,6l4,-6l4,6` });
  const ways = [
    up(95, 300, 288),
    up(95, 245, 218),
    up(95, 175, 163),
    up(95, 120, 93),
    up(325, 355, 343),
    up(325, 300, 273),
    up(325, 230, 203),
    up(325, 160, 148),
    up(325, 105, 78),
  ];
  const arrow = h("path", { class: "way", "data-box": "arrow", d: "M180,71H208V181H237m-6,-4l6,4l-6,4" });
  const frames = [
    h("rect", { class: "frame", x: 4, y: 112, width: 182, height: 113, rx: 8 }),
    h("rect", { class: "frame", x: 234, y: 97, width: 182, height: 183, rx: 8 }),
  ];
  const layers = [
    h("text", { class: "size", x: 14, y: 238 }, "each layer"),
    h("text", { class: "size", x: 244, y: 293 }, "each layer"),
  ];
  const drawing = h(
    "svg",
    {
      class: "live-journey",
      viewBox: "0 0 422 402",
      role: "img",
      "aria-label":
        "Encoder on the left, decoder on the right; the memory's keys and values go over to the decoder's cross-attention",
    },
    frames,
    layers,
    ways,
    arrow,
    shapes,
  );
  const told = h("div", { "aria-live": "polite" });
  const control = slider(
    "Stop",
    { min: 1, max: stops.length, step: 1, value: 1 },
    (stop) => `${stop} of ${stops.length}`,
    draw,
  );
  const go = (way) => () => {
    control.input.valueAsNumber += way;
    control.input.dispatchEvent(new Event("input"));
  };
  element.append(
    h("div", { class: "live-controls" }, control.row, button("Back", go(-1)), button("On", go(1))),
    told,
    drawing,
  );
  draw(1);

  function draw(stop) {
    const [lit, text, code, size] = stops[stop - 1];
    for (const box of drawing.querySelectorAll("[data-box]"))
      box.classList.toggle("lit", lit.includes(box.dataset.box));
    told.replaceChildren(h("p", {}, text), h("p", {}, h("code", {}, code), " ", h("b", {}, size)));
  }
}
