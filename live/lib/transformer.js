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
  let o = 0;
  // Four rows side by side: each number of x is fetched once for all four, and no sum has to wait for another.
  for (; o + 3 < y.length; o += 4) {
    const [first, second, third, fourth] = [o * inputs, (o + 1) * inputs, (o + 2) * inputs, (o + 3) * inputs];
    let [a, b, c, d] = bias ? [bias[o], bias[o + 1], bias[o + 2], bias[o + 3]] : [0, 0, 0, 0];
    for (let i = 0; i < inputs; i++) {
      const value = x[i];
      a += weight[first + i] * value;
      b += weight[second + i] * value;
      c += weight[third + i] * value;
      d += weight[fourth + i] * value;
    }
    [y[o], y[o + 1], y[o + 2], y[o + 3]] = [a, b, c, d];
  }
  for (; o < y.length; o++) {
    let sum = bias ? bias[o] : 0;
    for (let i = 0; i < inputs; i++) sum += weight[o * inputs + i] * x[i];
    y[o] = sum;
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
  return linear(
    linear(x, inner).map((value) => Math.max(value, 0)),
    outer,
  );
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
    const sums = new Float64Array(size);
    for (let j = 0; j < values.length; j++) {
      const [weight, value] = [weights[head][j], values[j]];
      for (let i = 0; i < size; i++) sums[i] += weight * value[from + i];
    }
    output.set(sums, from);
  }
  return { output, weights };
}

/** A pre-norm `TransformerBlock` on a whole sequence, `(n, d) → (n, d)`, and the weights of its attention, `(n, heads, n)`. */
export function preNormBlock(rows, { norm_1, attention, norm_2, feed_forward }, heads, turn = (x) => x) {
  const normed = rows.map((x) => layerNorm(x, norm_1));
  const keys = normed.map((x, position) => turn(linear(x, attention.Wk), position));
  const values = normed.map((x) => linear(x, attention.Wv));
  const looks = normed.map((x, position) => attend(turn(linear(x, attention.Wq), position), keys, values, heads));
  const output = rows.map((x, position) => {
    const y = add(x, linear(looks[position].output, attention.WO));
    return add(y, feedForward(layerNorm(y, norm_2), feed_forward));
  });
  return { output, weights: looks.map((look) => look.weights) };
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
