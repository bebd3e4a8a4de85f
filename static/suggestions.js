/**
 * @typedef {import("./api.js").CardSummary} CardSummary
 */

/**
 * Choose cards to suggest, by turns from every topic, the topic with most cards first.
 *
 * @param {CardSummary[]} cards
 * @param {string} language Preferred; where no card is in it, the others are taken.
 * @param {number} [limit]
 * @returns {CardSummary[]}
 */
export function chooseSuggestions(cards, language, limit = 6) {
  const own = cards.filter((card) => card.language === language);
  const byTopic = new Map();
  for (const card of own.length > 0 ? own : cards) {
    const topic = card.topics[0] ?? "";
    if (!byTopic.has(topic)) byTopic.set(topic, []);
    byTopic.get(topic).push(card);
  }
  const groups = [...byTopic.values()].sort((one, other) => other.length - one.length);
  const chosen = [];
  for (let turn = 0; chosen.length < limit && turn < cards.length; turn += 1) {
    chosen.push(...groups.filter((group) => turn < group.length).map((group) => group[turn]));
  }
  return chosen.slice(0, limit);
}
