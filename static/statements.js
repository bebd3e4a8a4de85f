/**
 * @typedef {import("./api.js").Segment} Segment
 */

const GOES_ON = /^\s*[.,;:!?)\]}»”…]/;

/**
 * Part an answer into statements: some text and the citations that follow it. Punctuation after a citation still
 * belongs to the statement before.
 *
 * @param {Segment[]} segments
 * @returns {Segment[][]}
 */
export function statementsOf(segments) {
  /** @type {Segment[][]} */
  const statements = [];
  let cited = true;
  for (const segment of segments) {
    const blank = segment.type === "text" && segment.text.trim() === "";
    const begins = segment.type === "text" && cited && !blank && !GOES_ON.test(segment.text);
    if (begins || statements.length === 0) statements.push([]);
    statements[statements.length - 1].push(segment);
    if (!blank) cited = segment.type === "citation";
  }
  return statements;
}

/**
 * @typedef {{number: number, cardId: string, citations: import("./api.js").Citation[]}} SourceEntry
 * @param {import("./api.js").Citation[]} citations
 * @returns {SourceEntry[]} One entry a card, by number, with its quotes in the order they are cited; a citation
 *   without a known card is no source.
 */
export function sourcesOf(citations) {
  const entries = new Map();
  for (const citation of citations.filter(({ verdict }) => verdict !== "unknown")) {
    const cardId = citation.card_id;
    if (!entries.has(cardId)) entries.set(cardId, { number: citation.number, cardId, citations: [] });
    entries.get(cardId).citations.push(citation);
  }
  return [...entries.values()].sort((one, other) => one.number - other.number);
}
