// Subwords as the translator was trained on them: a SentencePiece model file (byte-pair encoding), read as it is.

const NORMAL = 1;
const UNKNOWN = 2;
const CONTROL = 3;
const BPE = 2;
const SPACE = "▁"; // SentencePiece writes a space as a character of its own

/**
 * Read a SentencePiece model file.
 *
 * @param {Uint8Array} file - what stands in the `.model` file.
 * @returns {{pieces: string[], ids: Map<string, number>, scores: number[], types: number[], unknown: number,
 *   rules: ?{units: Uint32Array, texts: Uint8Array}}} pieces and scores by token number, and the rules of normalisation.
 */
export function readSentencePiece(file) {
  const model = readMessage(file);
  const trainer = readMessage(model[2][0]);
  if ((trainer[3]?.[0] ?? 1) !== BPE) throw new Error("this SentencePiece model is not byte-pair encoding");
  const [pieces, scores, types, ids] = [[], [], [], new Map()];
  for (const bytes of model[1]) {
    const entry = readMessage(bytes);
    const type = entry[3]?.[0] ?? NORMAL;
    if (type !== NORMAL && type !== UNKNOWN && type !== CONTROL)
      throw new Error(`pieces of type ${type} are not known`);
    pieces.push(new TextDecoder().decode(entry[1][0]));
    scores.push(readFloat(entry[2]?.[0]));
    types.push(type);
    if (type === NORMAL) ids.set(pieces.at(-1), pieces.length - 1);
  }
  const charsmap = readMessage(model[3][0])[2]?.[0];
  return { pieces, scores, types, ids, unknown: types.indexOf(UNKNOWN), rules: charsmap ? readRules(charsmap) : null };
}

/**
 * Text as token numbers.
 *
 * @param {object} model - from `readSentencePiece`.
 * @param {string} text - anything; characters that the model never saw become the unknown token.
 * @param {boolean} touching - whether the text touches what is before it, so that no space goes before its first word.
 * @returns {number[]} token numbers, without those of beginning and end.
 */
export function encode(model, text, touching = false) {
  const tokens = [];
  const spelled = normalise(model, text);
  for (const word of (touching ? spelled.slice(SPACE.length) : spelled).split(/(?=▁)/)) {
    for (const piece of mergePairs(model, [...word])) {
      const token = model.ids.get(piece) ?? model.unknown;
      const again = token === model.unknown && tokens.at(-1) === model.unknown; // a run of unknowns is one token
      if (!again) tokens.push(token);
    }
  }
  return tokens;
}

/**
 * Token numbers as text.
 *
 * @param {object} model - from `readSentencePiece`.
 * @param {number[]} tokens - token numbers; those of beginning, end and padding say nothing.
 */
export function decode(model, tokens) {
  const parts = tokens.map((token) => {
    if (token === model.unknown) return " ⁇ ";
    return model.types[token] === CONTROL ? "" : model.pieces[token];
  });
  return parts.join("").replace(/^▁/, "").replaceAll(SPACE, " ");
}

/** Join the neighbours whose pair was learnt first, again and again: the second half of byte-pair encoding. */
function mergePairs(model, parts) {
  for (;;) {
    let best = -1;
    let bestScore = -Infinity;
    for (let i = 0; i + 1 < parts.length; i++) {
      const token = model.ids.get(parts[i] + parts[i + 1]);
      if (token !== undefined && model.scores[token] > bestScore) {
        best = i;
        bestScore = model.scores[token];
      }
    }
    if (best < 0) return parts;
    parts.splice(best, 2, parts[best] + parts[best + 1]);
  }
}

/**
 * Text in the spelling that the pieces are made of: one way to write each letter ("ｆｕｌｌ" is "full", a letter and an accent
 * are one character), single spaces, each of them as "▁", and one before the first word.
 */
export function normalise(model, text) {
  const bytes = new TextEncoder().encode(text);
  let spelled = "";
  for (let at = 0; at < bytes.length; ) {
    const [replaced, length] = replaceAt(model.rules, bytes, at);
    spelled += replaced;
    at += length;
  }
  const words = spelled.split(" ").filter((word) => word !== "");
  return words.map((word) => SPACE + word).join("");
}

/** The longest rule that fits at a place: [what it puts there, how many bytes it replaces]. */
function replaceAt(rules, bytes, at) {
  let found = null;
  if (rules) {
    // A trie as a "double array": from a unit, the byte leads to the unit at `place ^ byte`, if that one bears its label.
    const { units } = rules;
    let place = offset(units[0]);
    for (let i = at; i < bytes.length; i++) {
      place ^= bytes[i];
      const unit = units[place];
      if ((unit & 0x800000ff) >>> 0 !== bytes[i]) break;
      place ^= offset(unit);
      if ((unit >>> 8) & 1) found = [units[place] & 0x7fffffff, i + 1 - at];
    }
  }
  if (found) return [readUntilZero(rules.texts, found[0]), found[1]];
  const length = bytes[at] < 0x80 ? 1 : bytes[at] < 0xe0 ? 2 : bytes[at] < 0xf0 ? 3 : 4; // of a character in UTF-8
  return [new TextDecoder().decode(bytes.subarray(at, at + length)), length];
}

function offset(unit) {
  return (unit >>> 10) << ((unit & 0x200) >>> 6);
}

function readRules(charsmap) {
  const size = new DataView(charsmap.buffer, charsmap.byteOffset).getUint32(0, true);
  const units = new Uint32Array(charsmap.slice(4, 4 + size).buffer);
  return { units, texts: charsmap.subarray(4 + size) };
}

function readUntilZero(bytes, start) {
  return new TextDecoder().decode(bytes.subarray(start, bytes.indexOf(0, start)));
}

/** The fields of a protocol buffer: for each number a list of integers or of bytes, in order. */
function readMessage(bytes) {
  const fields = {};
  let at = 0;
  const readInteger = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  const readBytes = (length) => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const key = readInteger();
    const kind = key & 7;
    const value = kind === 0 ? readInteger() : readBytes(kind === 2 ? readInteger() : kind === 1 ? 8 : 4);
    fields[key >>> 3] ??= [];
    fields[key >>> 3].push(value);
  }
  return fields;
}

function readFloat(bytes) {
  return bytes ? new DataView(bytes.buffer, bytes.byteOffset).getFloat32(0, true) : 0;
}
