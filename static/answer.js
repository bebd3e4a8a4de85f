import { element, unseen } from "./dom.js";
import { citationChip } from "./citation-chip.js";
import { parseInline } from "./markdown.js";
import { viewInline } from "./markdown-view.js";
import { quoteParts } from "./quote-parts.js";
import { refusalView } from "./refusal.js";
import { sourceList } from "./source-list.js";
import { sourcesOf, statementsOf } from "./statements.js";

/**
 * @typedef {import("./api.js").Answer} Answer
 * @typedef {import("./api.js").Segment} Segment
 * @typedef {import("./i18n.js").Words} Words
 * @typedef {import("./citation-chip.js").OpenCard} OpenCard
 */

/**
 * @param {Answer} answer
 * @param {Words} words
 * @param {OpenCard} openCard
 * @returns {HTMLElement}
 */
export function answerView(answer, words, openCard) {
  const body = answer.refusal
    ? [refusalView(answer.refusal, words, openCard)]
    : [...notes(answer, words), statementsView(answer, words, openCard), sourceList(answer.citations, words, openCard)];
  return entryView(answer.question, answer.language, words, { "data-testid": "answer" }, ...body);
}

/**
 * @param {string} question
 * @param {Words} words
 * @returns {HTMLElement} What stands in the answer's place until it comes.
 */
export function pendingView(question, words) {
  const lines = element("div", { class: "pending-lines", "aria-hidden": "true" }, ...[1, 2, 3].map(() => element("i")));
  return entryView(question, null, words, { "aria-busy": "true" }, lines);
}

/**
 * @param {Answer} answer
 * @param {Words} words
 * @returns {string} The status line once it is there.
 */
export function answerStatus(answer, words) {
  if (answer.refusal) return words.say("status.refused");
  return words.say("status.ready", { count: sourcesOf(answer.citations).length });
}

function entryView(question, language, words, attributes, ...body) {
  const title = element("h2", { class: "asked", lang: language, tabindex: "-1" },
    unseen(`${words.say("answer.question")}: `), question);
  return element("article", { class: "entry", ...attributes }, title, ...body);
}

/** An extractive answer is a row of quotes, one a line; any other is prose. */
function statementsView(answer, words, openCard) {
  const statements = answer.mode === "extractive" ? statementsOf(answer.segments) : [answer.segments];
  const lines = statements.map((segments) => element("p", { class: "statement" },
    ...segments.flatMap((segment) => segmentView(segment, answer, words, openCard))));
  return element("div", { class: "statements" }, ...lines);
}

function segmentView(segment, answer, words, openCard) {
  if (segment.type === "text") return [textView(segment)];
  const citation = answer.citations[segment.citation];
  return citation ? [citationChip(citation, words, openCard)] : [];
}

function textView({ text, language, supported }) {
  const lines = quoteParts(text).flatMap((part, at) => {
    const nodes = part.kind === "row" ? [rowView(part.cells)] : viewInline(parseInline(part.text));
    return at > 0 ? [element("br"), ...nodes] : nodes;
  });
  const [before, after] = [/^\s/.test(text) ? " " : null, /\s$/.test(text) ? " " : null];
  const attributes = { lang: language, class: supported === false ? "unconfirmed" : null };
  return element("span", attributes, before, ...lines, after);
}

function rowView(cells) {
  const parts = cells.flatMap((cell, at) => {
    const view = element("span", { class: "cell" }, ...viewInline(parseInline(cell)));
    return at > 0 ? [element("span", { class: "cell-gap" }, " · "), view] : [view];
  });
  return element("span", { class: "row" }, ...parts);
}

/** What to know before reading. */
function notes(answer, words) {
  const foreign = answer.citations.map(({ language }) => language)
    .filter((language, at, all) => language !== answer.language && all.indexOf(language) === at)
    .map((language) => `answer.foreign.${language}`).filter(words.has);
  const keys = answer.degraded ? ["answer.degraded", ...foreign] : foreign;
  return keys.map((key) => element("p", { class: "note" }, words.say(key)));
}
