import { sliceCodePoints } from "./spans.js";

const MAX_TURNS = 8;
const MAX_ANSWER_CHARS = 2000;
const MAX_BYTES = 32_000;

/**
 * What a follow-up question may lean on; the server takes 64 KiB for all of a request.
 *
 * @param {Answer[]} answers The oldest first.
 * @returns {Turn[]} The latest ones that were answered to the end.
 */
export function historyOf(answers) {
  const turns = answers.filter(({ refusal, stopped }) => !refusal && !stopped).slice(-MAX_TURNS)
    .map(({ question, answer }) => ({ question, answer: sliceCodePoints(answer, 0, MAX_ANSWER_CHARS) }));
  const size = () => new TextEncoder().encode(JSON.stringify(turns)).length;
  while (turns.length > 0 && size() > MAX_BYTES) turns.shift();
  return turns;
}
