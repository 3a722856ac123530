// Chapter 12's body: pre-norm blocks with rotary positions that look at both sides; its output is tied to its embedding.

import { rotate } from "./language.js";
import { add, attend, feedForward, layerNorm, linear, softmax } from "./transformer.js";

/**
 * What the body says of each token of a text.
 *
 * @param {{settings: object, weights: object}} model - from `unpackModel`.
 * @param {number[]} tokens - at most `settings.max_len`, none of them padding.
 * @returns {Float32Array[]} `(n, d)`.
 */
export function readBothSides({ settings, weights }, tokens) {
  const { dim, heads } = settings;
  let rows = tokens.map((token) => weights.embedding.weight.slice(token * dim, (token + 1) * dim));
  for (const { norm_1, attention, norm_2, feed_forward } of weights.blocks) {
    const normed = rows.map((x) => layerNorm(x, norm_1));
    const keys = normed.map((x, position) => rotate(linear(x, attention.Wk), position, heads));
    const values = normed.map((x) => linear(x, attention.Wv));
    rows = rows.map((x, position) => {
      const query = rotate(linear(normed[position], attention.Wq), position, heads);
      const y = add(x, linear(attend(query, keys, values, heads).output, attention.WO));
      return add(y, feedForward(layerNorm(y, norm_2), feed_forward));
    });
  }
  return rows.map((x) => layerNorm(x, weights.norm));
}

/**
 * What could be in the gaps of a text.
 *
 * @param {{settings: object, weights: object}} model - from `unpackModel`.
 * @param {number[]} tokens - with the mask in each gap.
 * @param {number} mask - the mask's token.
 * @returns {Float32Array[]} for each gap the probabilities of all pieces, `(V,)`.
 */
export function fillGaps(model, tokens, mask) {
  const rows = readBothSides(model, tokens);
  return rows
    .filter((_, i) => tokens[i] === mask)
    .map((x) => softmax(linear(x, { weight: model.weights.embedding.weight })));
}
