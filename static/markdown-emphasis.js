/**
 * Runs of `*` and `_`: which of them may open or close, and which pair up.
 *
 * @typedef {import("./markdown-inline.js").Scan} Scan
 * @typedef {import("./markdown-tree.js").Token} Token
 */

const SPACE = /\s/;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const MAX_RUN = 3;
const LOOK_BACK = 8;

/**
 * Read the run at the scan's place, close what it can close, and keep it as an opener if it can be one.
 *
 * @param {Scan} scan
 */
export function readDelimiters(scan) {
  const { text, at } = scan;
  const char = text[at];
  let to = at;
  while (text[to] === char) to += 1;
  scan.at = to;
  const sides = flanks(text, at, to);
  if (to - at > MAX_RUN || !(sides.canOpen || sides.canClose)) {
    scan.tokens.push({ kind: "text", from: at, to });
    return;
  }
  /** @type {Token} */
  const token = {
    kind: "delimiter", from: at, to, char, index: scan.tokens.length, left: to - at, opens: [], closes: [], ...sides,
  };
  scan.tokens.push(token);
  if (token.canClose) closeWith(scan, token);
  if (token.canOpen && token.left > 0) scan.openers[char].push(token);
}

/**
 * Drop every opener and bracket after a token, as what encloses them has just been closed.
 *
 * @param {Scan} scan
 * @param {number} index
 */
export function forgetAfter(scan, index) {
  for (const stack of [scan.openers["*"], scan.openers._, scan.brackets]) {
    while (stack.length > 0 && stack[stack.length - 1].index > index) stack.pop();
  }
}

/**
 * @param {Scan} scan
 * @param {Token} closer
 */
function closeWith(scan, closer) {
  const openers = scan.openers[closer.char];
  while (closer.left > 0) {
    const opener = findOpener(openers, closer);
    if (!opener) return;
    const size = Math.min(2, opener.left, closer.left);
    opener.opens.push(size);
    closer.closes.push(size);
    opener.left -= size;
    closer.left -= size;
    forgetAfter(scan, opener.index);
    if (opener.left === 0) openers.pop();
  }
}

/**
 * @param {Token[]} openers
 * @param {Token} closer
 * @returns {Token | null} The nearest that suits; only a few are looked at, which keeps the whole linear.
 */
function findOpener(openers, closer) {
  const last = Math.max(0, openers.length - LOOK_BACK);
  for (let index = openers.length - 1; index >= last; index -= 1) {
    if (suits(openers[index], closer)) return openers[index];
  }
  return null;
}

/**
 * CommonMark's "multiple of 3" rule, which keeps the single star of `**a*b**` from closing the double one.
 *
 * @param {Token} opener
 * @param {Token} closer
 */
function suits(opener, closer) {
  if (!opener.canClose && !closer.canOpen) return true;
  const [one, other] = [opener.to - opener.from, closer.to - closer.from];
  return (one + other) % 3 !== 0 || (one % 3 === 0 && other % 3 === 0);
}

/**
 * @param {string} text
 * @param {number} from
 * @param {number} to
 * @returns {{canOpen: boolean, canClose: boolean}} By what stands on either side of the run.
 */
function flanks(text, from, to) {
  const before = from === 0 ? " " : text[from - 1];
  const after = to === text.length ? " " : text[to];
  const [marksBefore, marksAfter] = [PUNCTUATION.test(before), PUNCTUATION.test(after)];
  const left = !SPACE.test(after) && (!marksAfter || SPACE.test(before) || marksBefore);
  const right = !SPACE.test(before) && (!marksBefore || SPACE.test(after) || marksAfter);
  if (text[from] === "*") return { canOpen: left, canClose: right };
  return { canOpen: left && (!right || marksBefore), canClose: right && (!left || marksAfter) };
}
