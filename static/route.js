/**
 * The part of the address after `#`: which card is open, and which quote of it is shown.
 *
 * @typedef {object} CardRoute
 * @property {string} cardId
 * @property {{start: number, end: number} | null} range The quote, in code points of the card's text.
 */

const PREFIX = "#/card/";
const CARD_ID = /^[a-z0-9][a-z0-9._-]{0,79}$/;
const OFFSET = /^[0-9]{1,9}$/;

/**
 * @param {string} hash As in `location.hash`.
 * @returns {CardRoute | null} Null for anything that names no card.
 */
export function parseRoute(hash) {
  if (!hash.startsWith(PREFIX)) return null;
  const [path, query = ""] = hash.slice(PREFIX.length).split("?", 2);
  const cardId = decoded(path);
  if (cardId === null || !CARD_ID.test(cardId)) return null;
  return { cardId, range: parseRange(new URLSearchParams(query)) };
}

/**
 * @param {CardRoute} route
 * @returns {string} The hash that `parseRoute` reads back.
 */
export function formatRoute({ cardId, range }) {
  const query = range ? `?s=${range.start}&e=${range.end}` : "";
  return `${PREFIX}${encodeURIComponent(cardId)}${query}`;
}

/**
 * @param {URLSearchParams} parameters
 * @returns {{start: number, end: number} | null} Null unless both ends are numbers and in order.
 */
function parseRange(parameters) {
  const start = parameters.get("s") ?? "";
  const end = parameters.get("e") ?? "";
  if (!OFFSET.test(start) || !OFFSET.test(end) || Number(start) >= Number(end)) return null;
  return { start: Number(start), end: Number(end) };
}

/**
 * @param {string} path
 * @returns {string | null} Null if its percent signs make no sense.
 */
function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}
