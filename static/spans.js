/** Offsets in code points, as the server counts, over strings that count UTF-16 units. */

/** @param {string} text @returns {Uint32Array} For each UTF-16 index, the end included, the code points before it. */
export function codePointOffsets(text) {
  const offsets = new Uint32Array(text.length + 1);
  // The first half of a pair counts for nothing.
  for (let at = 0; at < text.length; at += 1) offsets[at + 1] = offsets[at] + (text.codePointAt(at) > 0xffff ? 0 : 1);
  return offsets;
}

/** @param {string} text @returns {number} */
export function codePointLength(text) {
  return codePointOffsets(text)[text.length];
}

/** @param {string} text @param {number} start @param {number} end @returns {string} */
export function sliceCodePoints(text, start, end) {
  return Array.from(text).slice(start, end).join("");
}

/**
 * A quote in a card that may have been edited since: where it is said to stand, else where its words are, if known.
 *
 * @param {string} text @param {Place | null} range @param {string} [quote] @returns {Place | null}
 */
export function locateQuote(text, range, quote) {
  if (range && range.end <= codePointLength(text)) {
    if (quote === undefined || sliceCodePoints(text, range.start, range.end) === quote) return range;
  }
  const found = quote ? text.indexOf(quote) : -1;
  if (found < 0) return null;
  const start = codePointLength(text.slice(0, found));
  return { start, end: start + codePointLength(quote) };
}

/** @param {TextNode} leaf @param {Place | null} range @returns {Piece[]} None is empty. */
export function cutAtRange({ text, start, end }, range) {
  const from = Math.max(range ? range.start : 0, start) - start;
  const to = Math.min(range ? range.end : 0, end) - start;
  if (from >= to) return [{ text, marked: false }];
  return [
    { text: sliceCodePoints(text, 0, from), marked: false },
    { text: sliceCodePoints(text, from, to), marked: true },
    { text: sliceCodePoints(text, to, end), marked: false },
  ].filter((piece) => piece.text !== "");
}
