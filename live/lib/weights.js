// A trained model as it reaches the page: settings, subwords or words, and weights of 16 bits or of 8, in one compressed
// file that `live/models.py` writes.

import { readSentencePiece } from "./sentencepiece.js";
import { readWords } from "./words.js";

/**
 * Unpack a model.
 *
 * @param {Uint8Array} packed - the file.
 * @returns {Promise<{settings: object, subwords: ?object, words: ?object, weights: object}>} the weights as a tree with PyTorch's names:
 *   `weights.encoder.layers[0].attention.Wq.weight` is a `Float32Array` of `(out, in)`, row by row.
 */
export async function unpackModel(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const file = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(file.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(file.subarray(4, 4 + length)));
  const start = 4 + length + (header.subwords ?? header.words);
  const spelled = file.subarray(4 + length, start);
  const subwords = header.subwords ? readSentencePiece(spelled) : null;
  const words = header.words ? readWords(JSON.parse(new TextDecoder().decode(spelled))) : null;
  const halves = header.tensors.reduce((sum, [, count]) => sum + count, 0);
  const values = readHalves(file.subarray(start, start + 2 * halves));
  const weights = {};
  let at = 0;
  for (const [name, count] of header.tensors) {
    put(weights, name.split("."), values.subarray(at, at + count));
    at += count;
  }
  at = start + 2 * halves;
  for (const [name, rows, columns] of header.rows) {
    put(weights, name.split("."), readRows(file, at, rows, columns));
    at += rows * (4 + columns);
  }
  return { settings: header.settings, subwords, words, weights };
}

/** Half-precision numbers as float32. First come the low bytes of all of them, then the high bytes: that compresses better. */
export function readHalves(bytes) {
  const count = bytes.length / 2;
  const table = new Float32Array(65536).map((_, bits) => halfToNumber(bits));
  const values = new Float32Array(count);
  for (let i = 0; i < count; i++) values[i] = table[bytes[i] | (bytes[count + i] << 8)];
  return values;
}

/** Rows of integers from -128 to 127, each times the factor of its row, as float32; the factors come first. */
function readRows(file, at, rows, columns) {
  const factors = new Float32Array(file.slice(at, at + 4 * rows).buffer);
  const integers = new Int8Array(file.buffer, file.byteOffset + at + 4 * rows, rows * columns);
  const values = new Float32Array(rows * columns);
  for (let row = 0, i = 0; row < rows; row++)
    for (const end = i + columns; i < end; i++) values[i] = integers[i] * factors[row];
  return values;
}

/** The number that 16 bits stand for: one of sign, five of exponent, ten of fraction. */
function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = (bits & 1023) / 1024;
  if (exponent === 0) return sign * fraction * 2 ** -14;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction) * 2 ** (exponent - 15);
}

/** Put a value into a tree; where a name is a number, its parent is a list. */
function put(tree, names, value) {
  names.slice(0, -1).forEach((name, i) => {
    tree[name] ??= /^\d+$/.test(names[i + 1]) ? [] : {};
    tree = tree[name];
  });
  tree[names.at(-1)] = value;
}
