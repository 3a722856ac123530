// The shipped translator (chapter 09's `Translator`) and its decoding (chapter 10), for one sentence at a time.

import { decode, encode } from "./sentencepiece.js";
import { add, attend, feedForward, layerNorm, linear, sinusoid, softmax } from "./transformer.js";

/** The numbers of the tokens that are no words, in every vocabulary of the course. */
export const PAD = 1;
export const BOS = 2;
export const EOS = 3;

/**
 * Get a model ready.
 *
 * @param {{settings: object, subwords: object, weights: object}} model - from `unpackModel`.
 * @returns {object} the same with `off`: sets of switched-off heads by attention, such as `off["cross 2"]`.
 */
export function makeTranslator({ settings, subwords, weights }) {
  const { encoder, decoder } = weights;
  encoder.embedder ??= decoder.embedder; // one vocabulary for both languages: one table
  return { settings, subwords, encoder, decoder, off: {} };
}

/** A sentence as the encoder reads it: token numbers with both ends. */
export function sourceTokens(model, text) {
  return [BOS, ...encode(model.subwords, text), EOS];
}

/** Token numbers as text. */
export function targetText(model, tokens) {
  return decode(model.subwords, tokens);
}

/** A token's vector, times √d, plus that of its position: `(d,)`. */
function embed(table, token, position) {
  const dim = table.dim;
  const row = table.weight.subarray(token * dim, (token + 1) * dim);
  const place = sinusoid(position, dim);
  return row.map((value, i) => Math.fround(value * Math.fround(Math.sqrt(dim))) + place[i]);
}

/**
 * Read the source.
 *
 * @param {object} model - from `makeTranslator`.
 * @param {number[]} source - m token numbers, both ends included.
 * @returns {{memory: Float32Array[], kept: {keys: Float32Array[], values: Float32Array[]}[], weights: number[][][][]}}
 *   the memory `(m, d)`, its keys and values for each decoder layer, which stay the same at every step, and the weights
 *   `(layers, heads, m, m)` with which the encoder looked.
 */
export function encodeSource(model, source) {
  const { dim, heads } = model.settings;
  const table = { dim, weight: model.encoder.embedder.embedding.weight };
  let x = source.map((token, position) => embed(table, token, position));
  const weights = [];
  model.encoder.layers.forEach((layer, index) => {
    const { attention } = layer;
    const normed = x.map((vector) => layerNorm(vector, layer.norm_1));
    const keys = normed.map((vector) => linear(vector, attention.Wk));
    const values = normed.map((vector) => linear(vector, attention.Wv));
    const off = model.off[`encoder ${index}`];
    const looks = normed.map((vector) => attend(linear(vector, attention.Wq), keys, values, heads, off));
    x = x.map((vector, i) => add(vector, linear(looks[i].output, attention.WO)));
    x = x.map((vector) => add(vector, feedForward(layerNorm(vector, layer.norm_2), layer.feed_forward)));
    weights.push(Array.from({ length: heads }, (_, head) => looks.map((look) => look.weights[head])));
  });
  const memory = x.map((vector) => layerNorm(vector, model.encoder.norm));
  const kept = model.decoder.layers.map(({ cross_attention }) => ({
    keys: memory.map((vector) => linear(vector, cross_attention.Wk)),
    values: memory.map((vector) => linear(vector, cross_attention.Wv)),
  }));
  return { memory, kept, weights };
}

/**
 * One step of the decoder: only the newest token goes through it, the keys and values of the earlier ones are in the cache.
 *
 * @param {object} model - from `makeTranslator`.
 * @param {object} read - from `encodeSource`.
 * @param {?{keys: Float32Array[], values: Float32Array[]}[]} cache - what the step before returned; null at first.
 * @param {number} token - the newest token: at first that of the beginning.
 * @returns {{logits: Float32Array, cache: object[], self: number[][][], cross: number[][][]}} logits `(V,)`, the new cache (the
 *   one handed in is not changed), weights on the t target positions `(layers, heads, t)` and on the source `(layers, heads, m)`.
 */
export function decoderStep(model, read, cache, token) {
  const { dim, heads } = model.settings;
  const { decoder } = model;
  const table = { dim, weight: decoder.embedder.embedding.weight };
  const position = cache ? cache[0].keys.length : 0;
  let x = embed(table, token, position);
  const [newCache, self, cross] = [[], [], []];
  decoder.layers.forEach((layer, index) => {
    const own = layer.self_attention;
    const normed = layerNorm(x, layer.norm_1);
    const keys = [...(cache?.[index].keys ?? []), linear(normed, own.Wk)];
    const values = [...(cache?.[index].values ?? []), linear(normed, own.Wv)];
    const back = attend(linear(normed, own.Wq), keys, values, heads, model.off[`self ${index}`]);
    x = add(x, linear(back.output, own.WO));

    const theirs = layer.cross_attention;
    const query = linear(layerNorm(x, layer.norm_2), theirs.Wq);
    const over = attend(query, read.kept[index].keys, read.kept[index].values, heads, model.off[`cross ${index}`]);
    x = add(x, linear(over.output, theirs.WO));

    x = add(x, feedForward(layerNorm(x, layer.norm_3), layer.feed_forward));
    newCache.push({ keys, values });
    self.push(back.weights);
    cross.push(over.weights);
  });
  const logits = linear(layerNorm(x, decoder.norm), table); // the output is tied to the embedding
  logits[PAD] = 0; // a constant, as in training
  return { logits, cache: newCache, self, cross };
}

/** The log-probabilities of logits `(V,)`. */
export function logSoftmax(logits) {
  const largest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - largest), 0);
  return logits.map((logit) => logit - largest - Math.log(sum));
}

/** The numbers of the k largest values, largest first; of equal ones the first. */
export function largest(values, k) {
  const best = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === k && !(values[i] > values[best[k - 1]])) continue;
    let place = best.length;
    while (place > 0 && values[i] > values[best[place - 1]]) place--;
    best.splice(place, 0, i);
    best.length = Math.min(best.length, k);
  }
  return best;
}

/**
 * Greedy decoding, one token at a time: a generator, so that a page can show each word as it comes.
 *
 * @param {object} model - from `makeTranslator`.
 * @param {number[]} source - from `sourceTokens`.
 * @param {number} most - the most tokens that a translation may have.
 * @yields {{token: number, candidates: {token: number, probability: number}[], self: number[][][], cross: number[][][]}} the
 *   token that was taken, the end's too, the five likeliest, and where the decoder looked.
 */
export function* greedySteps(model, source, most) {
  const read = encodeSource(model, source);
  let cache = null;
  let token = BOS;
  for (let n = 0; n < most && token !== EOS; n++) {
    const step = decoderStep(model, read, cache, token);
    const probabilities = softmax(step.logits);
    const candidates = largest(step.logits, 5).map((t) => ({ token: t, probability: probabilities[t] }));
    token = candidates[0].token;
    cache = step.cache;
    yield { token, candidates, self: step.self, cross: step.cross };
  }
}

/** The greedy translation: token numbers without beginning and end. */
export function greedyDecode(model, source, most) {
  return [...greedySteps(model, source, most)].map((step) => step.token).filter((token) => token !== EOS);
}

/**
 * Beam search: at each step keep the `beam` likeliest of all continuations. A hypothesis that has ended stays as it is.
 *
 * @param {object} model - from `makeTranslator`.
 * @param {number[]} source - from `sourceTokens`.
 * @param {number} beam - how many hypotheses are kept.
 * @param {number} most - the most tokens that a translation may have.
 * @param {number} penalty - the sum is divided by ((5 + length) / 6) ** penalty before hypotheses are compared at the end.
 * @param {number} reward - what a hypothesis gets for each of its tokens.
 * @returns {{best: object, last: object[], steps: {kept: object[], pruned: object[]}[]}} the best hypothesis, all of the
 *   last step, and for each step those that were kept and the next likeliest, which were not. A hypothesis is
 *   `{tokens, sum, ended, score, parent}`; its tokens include the end's.
 */
export function beamSearch(model, source, beam, most, penalty = 0.6, reward = 0) {
  const read = encodeSource(model, source);
  let kept = [{ tokens: [], sum: 0, ended: false, parent: null, cache: null }];
  const steps = [];
  for (let n = 0; n < most && !kept.every((one) => one.ended); n++) {
    const continued = kept.flatMap((one) => continuations(model, read, one, beam, reward));
    continued.sort((a, b) => b.sum - a.sum);
    kept = continued.slice(0, beam);
    steps.push({ kept, pruned: continued.slice(beam, 2 * beam) });
  }
  for (const one of kept) one.score = one.sum / ((5 + one.tokens.length) / 6) ** penalty;
  const best = kept.reduce((a, b) => (b.score > a.score ? b : a));
  return { best, last: kept, steps };
}

/** The k likeliest continuations of a hypothesis; of one that has ended, itself. */
function continuations(model, read, parent, k, reward) {
  if (parent.ended) return [{ ...parent, parent }];
  const step = decoderStep(model, read, parent.cache, parent.tokens.at(-1) ?? BOS);
  const logProbs = logSoftmax(step.logits);
  return largest(logProbs, k).map((token) => ({
    tokens: [...parent.tokens, token],
    sum: parent.sum + logProbs[token] + reward,
    ended: token === EOS,
    parent,
    cache: step.cache,
  }));
}
