/** The address after `#`: which card is open at which quote, or what is looked for among the cards. */

const ADDRESS = /^#\/(?:cards|card\/([^?]*))(?:\?(.*))?$/s;
const CARD_ID = /^[a-z0-9][a-z0-9._-]{0,79}$/;
const OFFSET = /^[0-9]{1,9}$/;

/** @param {string} hash As in `location.hash`. @returns {Route | null} Null for anything else. */
export function parseRoute(hash) {
  const [address, path, query] = ADDRESS.exec(hash) ?? [];
  if (address === undefined) return null;
  const { s, e, topic = "", text = "" } = Object.fromEntries(new URLSearchParams(query));
  if (path === undefined) return { view: "cards", topic, text };
  const cardId = decoded(path);
  if (!CARD_ID.test(cardId)) return null;
  const range = OFFSET.test(s) && OFFSET.test(e) && Number(s) < Number(e) ? { start: Number(s), end: Number(e) } : null;
  return { view: "card", cardId, range };
}

/** @param {OpenTarget | Partial<CardsRoute>} route @returns {string} The hash that `parseRoute` reads back. */
export function formatRoute(route) {
  if ("cardId" in route) {
    const { cardId, range } = route;
    return `#/card/${encodeURIComponent(cardId)}${range ? `?s=${range.start}&e=${range.end}` : ""}`;
  }
  const { topic, text } = route;
  const query = new URLSearchParams({ ...(topic && { topic }), ...(text && { text }) }).toString();
  return `#/cards${query && `?${query}`}`;
}

/** Empty if its percent signs make no sense. */
function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return "";
  }
}
