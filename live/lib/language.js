// Chapter 11's language model: a decoder alone, with RMSNorm, SwiGLU and rotary positions. One new token at a time, with a cache.

import { add, attend, linear, softmax } from "./transformer.js";
import { largest } from "./translate.js";

/** `RMSNorm`: divided by the root of the mean square, then scaled. `(d,) → (d,)` */
export function rmsNorm(x, { weight }, eps = 1e-6) {
  const square = x.reduce((sum, value) => sum + value * value, 0) / x.length;
  return x.map((value, i) => (weight[i] * value) / Math.sqrt(square + eps));
}

/** `SwiGLU`: down(silu(gate(x)) · up(x)). `(d,) → (d,)` */
export function swiGlu(x, { gate, up, down }) {
  const opened = linear(x, gate).map((value) => value / (1 + Math.exp(-value)));
  const raised = linear(x, up);
  return linear(
    opened.map((value, i) => value * raised[i]),
    down,
  );
}

/** `rotate`, in each head for itself: features 2k and 2k + 1 turn by position · base^(-2k / size). `(d,) → (d,)` */
export function rotate(x, position, heads, base = 10000) {
  const size = x.length / heads;
  const y = new Float32Array(x.length);
  for (let i = 0; i < x.length; i += 2) {
    const angle = position * base ** (-(i % size) / size);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    y[i] = x[i] * cos - x[i + 1] * sin;
    y[i + 1] = x[i] * sin + x[i + 1] * cos;
  }
  return y;
}

/**
 * One step: the newest token goes through the layers.
 *
 * @param {{settings: object, weights: object}} model - from `unpackModel`.
 * @param {?{keys: Float32Array[], values: Float32Array[]}[]} cache - what the step before returned; null at first.
 * @param {number} token - the newest token.
 * @returns {{logits: Float32Array, cache: object[]}} logits `(V,)` of the token after it, and the new cache.
 */
export function languageStep({ settings, weights }, cache, token) {
  const { dim, heads } = settings;
  const position = cache ? cache[0].keys.length : 0;
  let x = weights.embedding.weight.slice(token * dim, (token + 1) * dim);
  const newCache = weights.layers.map(({ norm_1, attention, norm_2, feed_forward }, index) => {
    const normed = rmsNorm(x, norm_1);
    const keys = [...(cache?.[index].keys ?? []), rotate(linear(normed, attention.Wk), position, heads)];
    const values = [...(cache?.[index].values ?? []), linear(normed, attention.Wv)];
    const query = rotate(linear(normed, attention.Wq), position, heads);
    x = add(x, linear(attend(query, keys, values, heads).output, attention.WO));
    x = add(x, swiGlu(rmsNorm(x, norm_2), feed_forward));
    return { keys, values };
  });
  return { logits: linear(rmsNorm(x, weights.norm), weights.embedding), cache: newCache };
}

/**
 * The tokens that may be drawn, with their probabilities: `sample_next` up to the draw.
 *
 * @param {Float32Array} logits - `(V,)`.
 * @param {{temperature: number, topK: number, topP: number}} rules - temperature 0 takes the likeliest; the k likeliest stay; of these
 *   the smallest set whose probability reaches p, at least one.
 * @returns {{token: number, probability: number}[]} likeliest first; the probabilities sum to 1.
 */
export function allowedTokens(logits, { temperature, topK, topP }) {
  if (temperature === 0) return [{ token: largest(logits, 1)[0], probability: 1 }];
  const probabilities = softmax(logits.map((logit) => logit / temperature));
  const order = [...logits.keys()].sort((a, b) => logits[b] - logits[a]).slice(0, topK);
  const kept = order.map((token) => ({ token, probability: probabilities[token] }));
  const whole = kept.reduce((sum, one) => sum + one.probability, 0);
  let reached = 0;
  const nucleus = kept.filter((one) => {
    const before = reached;
    reached += one.probability / whole;
    return before < topP;
  });
  const sum = nucleus.reduce((total, one) => total + one.probability, 0);
  return nucleus.map((one) => ({ token: one.token, probability: one.probability / sum }));
}

/** Draw one of the allowed tokens; `random` gives a number from 0 to 1. */
export function draw(allowed, random) {
  let left = random();
  for (const one of allowed) {
    left -= one.probability;
    if (left < 0) return one.token;
  }
  return allowed.at(-1).token;
}

/** Random numbers from 0 to 1 that a seed determines (Mulberry32). */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
