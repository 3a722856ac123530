// Chapter 12's body: pre-norm blocks with rotary positions that look at both sides; its output is tied to its embedding.

import { rotate } from "./language.js";
import { layerNorm, linear, preNormBlock, softmax } from "./transformer.js";

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
  for (const block of weights.blocks)
    rows = preNormBlock(rows, block, heads, (x, position) => rotate(x, position, heads)).output;
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
