// The parts of a transformer for one sentence: what chapters 03 to 09 build with PyTorch, written out.
// A vector is a Float32Array, a sequence `(n, d)` an array of n of them. Sums are taken in double precision.

/**
 * `nn.Linear`: y = W x + b.
 *
 * @param {Float32Array} x - `(in,)`.
 * @param {{weight: Float32Array, bias: ?Float32Array}} layer - weight `(out, in)`, row by row.
 * @returns {Float32Array} `(out,)`.
 */
export function linear(x, { weight, bias }) {
  const inputs = x.length;
  const y = new Float32Array(weight.length / inputs);
  for (let o = 0; o < y.length; o++) {
    const row = o * inputs;
    let a = bias ? bias[o] : 0;
    let b = 0;
    let c = 0;
    let d = 0;
    let i = 0;
    // Four sums side by side: the processor need not wait for one addition before it starts the next.
    for (; i + 3 < inputs; i += 4) {
      a += weight[row + i] * x[i];
      b += weight[row + i + 1] * x[i + 1];
      c += weight[row + i + 2] * x[i + 2];
      d += weight[row + i + 3] * x[i + 3];
    }
    for (; i < inputs; i++) a += weight[row + i] * x[i];
    y[o] = a + b + c + d;
  }
  return y;
}

/** `LayerNorm`: mean 0 and variance 1 over the features, then scaled and shifted. `(d,) → (d,)` */
export function layerNorm(x, { weight, bias }, eps = 1e-5) {
  const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
  const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
  const scale = 1 / Math.sqrt(variance + eps);
  return x.map((value, i) => weight[i] * (value - mean) * scale + bias[i]);
}

/** Softmax of scores `(m,)`, stable: the largest becomes e⁰. */
export function softmax(scores) {
  const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = scores.map((score) => Math.exp(score - largest));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

/** Two vectors, added. */
export function add(x, y) {
  return x.map((value, i) => value + y[i]);
}

/** `FeedForward`: wider, ReLU, back again. `(d,) → (d,)` */
export function feedForward(x, { inner, outer }) {
  return linear(linear(x, inner).map((value) => Math.max(value, 0)), outer);
}

/**
 * One query looks at some keys and collects their values, in each head for itself.
 *
 * @param {Float32Array} query - `(d,)`: head h has the features from h·d/heads on.
 * @param {Float32Array[]} keys - `(m, d)`.
 * @param {Float32Array[]} values - `(m, d)`.
 * @param {number} heads - how many.
 * @param {?Set<number>} off - heads that are switched off: they collect nothing.
 * @returns {{output: Float32Array, weights: number[][]}} output `(d,)`, weights `(heads, m)`.
 */
export function attend(query, keys, values, heads, off = null) {
  const size = query.length / heads;
  const output = new Float32Array(query.length);
  const weights = [];
  for (let head = 0; head < heads; head++) {
    const [from, to] = [head * size, (head + 1) * size];
    const scores = keys.map((key) => {
      let sum = 0;
      for (let i = from; i < to; i++) sum += query[i] * key[i];
      return sum / Math.sqrt(size);
    });
    weights.push(softmax(scores));
    if (off?.has(head)) continue;
    for (let i = from; i < to; i++) {
      let sum = 0;
      for (let j = 0; j < values.length; j++) sum += weights[head][j] * values[j][i];
      output[i] = sum;
    }
  }
  return { output, weights };
}

/**
 * Row `position` of the sinusoidal encoding, `(dim,)`. PyTorch works it out in float32, and `Math.fround` rounds as it does.
 */
export function sinusoid(position, dim) {
  const row = new Float32Array(dim);
  for (let k = 0; k < dim; k += 2) {
    const angle = Math.fround(position / Math.fround(10000 ** (k / dim)));
    row[k] = Math.sin(angle);
    if (k + 1 < dim) row[k + 1] = Math.cos(angle);
  }
  return row;
}
