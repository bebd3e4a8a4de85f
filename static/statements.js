const GOES_ON = /^\s*[.,;:!?)\]}»”…]/;

/**
 * Part an answer into statements: some text and the citations that follow it. Punctuation after a citation still
 * belongs to the statement before.
 *
 * @param {Segment[]} segments @returns {Segment[][]}
 */
export function statementsOf(segments) {
  /** @type {Segment[][]} */
  const statements = [];
  let cited = true;
  for (const segment of segments) {
    const text = segment.type === "text" ? segment.text : "";
    const blank = segment.type === "text" && text.trim() === "";
    if ((cited && text.trim() && !GOES_ON.test(text)) || statements.length === 0) statements.push([]);
    statements.at(-1).push(segment);
    if (!blank) cited = segment.type === "citation";
  }
  return statements;
}

/** @param {Citation[]} citations @returns {SourceEntry[]} One entry a card, by number; an unknown card is no source. */
export function sourcesOf(citations) {
  const entries = new Map();
  for (const citation of citations.filter(({ verdict }) => verdict !== "unknown")) {
    const { card_id: cardId, number } = citation;
    if (!entries.has(cardId)) entries.set(cardId, { number, cardId, citations: [] });
    entries.get(cardId).citations.push(citation);
  }
  return [...entries.values()].sort((one, other) => one.number - other.number);
}

/** @param {Citation} citation @returns {string} What stands behind the sentence. */
export function labelOf({ number, verdict }) {
  return verdict === "valid" ? String(number) : `${number} ${verdict === "weak" ? "≈" : "?"}`;
}

/** @param {Citation} citation @returns {Place | null} Null where nothing is quoted. */
export function rangeOf({ start, end }) {
  return Number.isInteger(start) && Number.isInteger(end) && start < end ? { start, end } : null;
}
