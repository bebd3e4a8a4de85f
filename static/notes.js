/** Why what a model wrote is not shown, where it was there and did not pass. */
const UNPROVED = new Set(["no_valid_citation", "beside_the_point", "unreadable_reply"]);

/**
 * @param {Answer} answer
 * @param {Words} words
 * @returns {string[]} What to know before reading.
 */
export function notesOf(answer, words) {
  const { searched, degraded_reason: reason, language } = answer;
  const keys = [];
  if (answer.stopped) keys.push("answer.stopped");
  if (answer.question_truncated) keys.push("answer.truncated");
  if (searched) keys.push("answer.searched");
  if (!answer.refusal) {
    if (answer.degraded) keys.push(UNPROVED.has(reason) ? "answer.unproved" : "answer.degraded");
    else if (answer.mode === "llm") keys.push("answer.written");
    const unconfirmed = answer.segments.some((segment) => segment.type === "text" && segment.supported === false);
    if (unconfirmed) keys.push("answer.unconfirmed");
    const foreign = new Set(answer.citations.map((citation) => citation.language));
    foreign.delete(language);
    keys.push(...[...foreign].map((code) => `answer.foreign.${code}`).filter(words.has));
  }
  return keys.map((key) => words.say(key, { searched }));
}
