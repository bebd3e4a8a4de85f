/** @param {string} text @returns {string} Without capitals and accents: `Fármaco` and `farmaco` are one word. */
export function foldText(text) {
  return text.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "");
}

/** @param {CardSummary[]} cards @returns {{topic: string, count: number}[]} Those with most cards first. */
export function topicsOf(cards) {
  const counts = new Map();
  for (const { topics } of cards) for (const topic of new Set(topics)) counts.set(topic, (counts.get(topic) ?? 0) + 1);
  return [...counts].map(([topic, count]) => ({ topic, count }))
    .sort((one, other) => other.count - one.count || one.topic.localeCompare(other.topic));
}

/**
 * Cards of a topic whose title, topics and questions have every word of a text; all of them where neither is given.
 *
 * @param {CardSummary[]} cards @param {{text?: string, topic?: string}} wanted @returns {CardSummary[]} In their order.
 */
export function filterCards(cards, { text = "", topic = "" }) {
  const words = foldText(text).match(/\S+/g) ?? [];
  return cards.filter(({ title, topics, questions = [] }) => {
    if (topic && !topics.includes(topic)) return false;
    const said = words.length > 0 ? foldText([title, ...topics, ...questions].join("\n")) : "";
    return words.every((word) => said.includes(word));
  });
}

/** @param {CardSummary[]} cards @returns {{topic: string, cards: CardSummary[]}[]} By first topic; "" for none is last. */
export function groupByTopic(cards) {
  const groups = new Map();
  for (const card of cards) {
    const topic = card.topics[0] ?? "";
    if (!groups.has(topic)) groups.set(topic, { topic, cards: [] });
    groups.get(topic).cards.push(card);
  }
  return [...groups.values()].sort(({ topic: one }, { topic: other }) => (
    Number(one === "") - Number(other === "") || one.localeCompare(other)
  ));
}
