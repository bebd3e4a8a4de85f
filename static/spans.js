/**
 * Offsets in code points, the unit the server counts in, over JavaScript strings, which count UTF-16 units.
 */

/**
 * @param {string} text
 * @param {number} at A UTF-16 index.
 * @returns {boolean} Whether a pair of surrogates (one code point) begins here.
 */
function isPairAt(text, at) {
  return text.codePointAt(at) > 0xffff;
}

/**
 * @param {string} text
 * @returns {Uint32Array} For each UTF-16 index, the end included, the code points before it.
 */
export function codePointOffsets(text) {
  const offsets = new Uint32Array(text.length + 1);
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    offsets[at] = count;
    if (isPairAt(text, at)) {
      at += 1;
      offsets[at] = count;
    }
    count += 1;
  }
  offsets[text.length] = count;
  return offsets;
}

/**
 * @param {string} text
 * @returns {number} Its length in code points.
 */
export function codePointLength(text) {
  let count = 0;
  for (let at = 0; at < text.length; at += isPairAt(text, at) ? 2 : 1) count += 1;
  return count;
}

/**
 * @param {string} text
 * @param {number} offset In code points.
 * @returns {number} The UTF-16 index there, or the text's end if it is shorter.
 */
export function unitIndex(text, offset) {
  let at = 0;
  for (let count = 0; count < offset && at < text.length; count += 1) at += isPairAt(text, at) ? 2 : 1;
  return at;
}

/**
 * @param {string} text
 * @param {number} start In code points.
 * @param {number} end In code points, exclusive.
 * @returns {string}
 */
export function sliceCodePoints(text, start, end) {
  const from = unitIndex(text, start);
  const rest = text.slice(from);
  return rest.slice(0, unitIndex(rest, end - start));
}

/**
 * Find where a quote stands in a card, which may have been edited since it was quoted.
 *
 * @param {string} text
 * @param {{start: number, end: number} | null} range Where it is said to stand.
 * @param {string} [quote] Its words, if known.
 * @returns {{start: number, end: number} | null} Null if it stands nowhere.
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

/**
 * @typedef {{text: string, marked: boolean}} Piece
 * @param {{text: string, start: number, end: number}} leaf Text that stands at [start, end) of its source.
 * @param {{start: number, end: number} | null} range
 * @returns {Piece[]} The leaf's text in order, cut where the range begins and ends; no piece is empty.
 */
export function cutAtRange(leaf, range) {
  const from = Math.max(range ? range.start : 0, leaf.start);
  const to = Math.min(range ? range.end : 0, leaf.end);
  if (from >= to) return [{ text: leaf.text, marked: false }];
  const pieces = [
    { text: sliceCodePoints(leaf.text, 0, from - leaf.start), marked: false },
    { text: sliceCodePoints(leaf.text, from - leaf.start, to - leaf.start), marked: true },
    { text: sliceCodePoints(leaf.text, to - leaf.start, leaf.end - leaf.start), marked: false },
  ];
  return pieces.filter((piece) => piece.text !== "");
}
