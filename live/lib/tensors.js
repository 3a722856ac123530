// Large tensors travel as half-precision numbers in base64; a figure gets them as lists of lists.

import { readHalves } from "./weights.js";

/** Data with every packed tensor, `{halves, shape}`, unpacked. */
export function unpackData(data) {
  if (Array.isArray(data)) return data.map(unpackData);
  if (data === null || typeof data !== "object") return data;
  if ("halves" in data) {
    const bytes = Uint8Array.from(atob(data.halves), (character) => character.charCodeAt(0));
    return shaped(readHalves(bytes), data.shape);
  }
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, unpackData(value)]));
}

function shaped(values, [size, ...inner]) {
  if (inner.length === 0) return [...values];
  const step = values.length / size;
  return Array.from({ length: size }, (_, i) => shaped(values.subarray(i * step, (i + 1) * step), inner));
}
