// Reviews as chapter 07 cuts them: spaCy's rules for English, which `live/words.py` writes down.

/**
 * Rules as they are used.
 *
 * @param {{prefix: string, suffix: string, infix: string, url: string, exceptions: object, words: string[]}} read - patterns, texts that are
 *   cut in a way of their own, and the words by number.
 * @returns {object} for `cutReview`; `numbers` has the number of each word.
 */
export function readWords({ prefix, suffix, infix, url, exceptions, words }) {
  const rules = {
    prefix: new RegExp(prefix, "u"),
    suffix: new RegExp(suffix, "u"),
    infix: new RegExp(infix, "gu"),
    url: new RegExp(`^(?:${url})`, "u"),
    exceptions: new Map(Object.entries(exceptions)),
    joined: new Map(), // exceptions that the other rules would cut, and how
    cut: new Map(), // what was cut already
    numbers: new Map(words.map((word, number) => [word, number])),
  };
  for (const text of rules.exceptions.keys())
    if (rules.prefix.test(text) || rules.suffix.test(text) || text.search(rules.infix) >= 0 || text.includes(" "))
      rules.joined.set(
        text,
        cutAffixes(rules, text, () => undefined),
      );
  return rules;
}

/** The lower-case words of a review, without the line breaks of web pages. */
export function cutReview(rules, text) {
  const chunks = text.replaceAll("<br />", " ").split(/\s+/u);
  return chunks.flatMap((chunk) => {
    if (!rules.cut.has(chunk)) {
      const parts = rules.exceptions.get(chunk) ?? joinExceptions(rules, cutAffixes(rules, chunk, known));
      rules.cut.set(
        chunk,
        parts.map((part) => part.toLowerCase()),
      );
    }
    return rules.cut.get(chunk);
  });

  function known(part) {
    return rules.exceptions.get(part);
  }
}

/** What stands before and behind is cut off, from outside inwards, until the rest is known or holds nothing more. */
function cutAffixes(rules, chunk, known) {
  const [before, after] = [[], []];
  let rest = chunk;
  while (rest && !known(rest)) {
    const head = rules.prefix.exec(rest)?.[0].length ?? 0;
    const tail = rules.suffix.exec(rest)?.index ?? rest.length;
    if (head === 0 && tail === rest.length) break;
    const [early, late] = [head > 0 && known(rest.slice(head)), tail < rest.length && known(rest.slice(0, tail))];
    const cutHead = head > 0 && (early || !late);
    const cutTail = tail < rest.length && !early && (late || head === 0 || head <= tail);
    if (cutTail) after.unshift(rest.slice(tail));
    if (cutHead) before.push(rest.slice(0, head));
    rest = rest.slice(cutHead ? head : 0, cutTail ? tail : rest.length);
  }
  return [...before, ...cutInside(rules, rest, known), ...after];
}

function cutInside(rules, rest, known) {
  if (!rest) return [];
  if (known(rest)) return known(rest);
  if (rules.url.test(rest)) return [rest];
  const parts = [];
  let from = 0;
  for (const { index, 0: found } of rest.matchAll(rules.infix)) {
    if (index === 0 && from === 0) continue;
    parts.push(rest.slice(from, index), found);
    from = index + found.length;
  }
  return [...parts, rest.slice(from)].filter((part) => part !== "");
}

/** The longest run of parts that is an exception, such as “:)” behind a word, is cut as that says. */
function joinExceptions(rules, parts) {
  const result = [];
  for (let i = 0; i < parts.length; ) {
    let [end, found] = [i + 1, [parts[i]]];
    for (let j = i, text = ""; j < parts.length; j++) {
      text += parts[j];
      const own = rules.joined.get(text);
      if (own?.length === j + 1 - i && own.every((part, k) => part === parts[i + k]))
        [end, found] = [j + 1, rules.exceptions.get(text)];
    }
    result.push(...found);
    i = end;
  }
  return result;
}
