// Chapter 07's classifier: words with learned positions, pre-norm blocks, the mean over the words, a linear layer.

import { add, layerNorm, linear, preNormBlock, softmax } from "./transformer.js";

/**
 * What the classifier says of some words.
 *
 * @param {{settings: object, weights: object}} model - from `unpackModel`.
 * @param {number[]} tokens - at most `settings.max_len`.
 * @param {boolean[]} erased - which of them it does not see: what padding in their place would do.
 * @returns {{chances: number[], looked: number[]}} the probability of each class, and how much each token that is left is looked at in the
 *   first block: the mean over its heads and over all that look, which sums to 1.
 */
export function classify({ settings, weights }, tokens, erased) {
  const { dim, heads } = settings;
  const row = (table, i) => table.slice(i * dim, (i + 1) * dim);
  const places = [...tokens.keys()].filter((i) => !erased[i]);
  let rows = places.map((i) => add(row(weights.embedding.weight, tokens[i]), row(weights.positions.weight, i)));
  let first = null;
  for (const block of weights.blocks) {
    const { output, weights: looks } = preNormBlock(rows, block, heads);
    rows = output;
    first ??= looks;
  }
  const mean = new Float32Array(dim);
  for (const x of rows)
    layerNorm(x, weights.norm).forEach((value, c) => {
      mean[c] += value / rows.length;
    });
  const looked = new Array(places.length).fill(0);
  for (const weights of first.flat())
    weights.forEach((weight, i) => {
      looked[i] += weight / (heads * places.length);
    });
  return { chances: [...softmax(linear(mean, weights.classes))], looked };
}
