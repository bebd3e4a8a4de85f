import { element, unseen } from "./dom.js";
import { citationChip } from "./citation-chip.js";
import { parseInline } from "./markdown.js";
import { viewInline } from "./markdown-view.js";
import { notesOf } from "./notes.js";
import { quoteParts } from "./quote-parts.js";
import { refusalView } from "./refusal.js";
import { sourceList } from "./source-list.js";
import { sourcesOf, statementsOf } from "./statements.js";

/**
 * @param {Answer} answer
 * @param {number} turn Its place in the conversation.
 * @param {PageTools} tools
 * @param {{copy: () => void, askAgain: () => void}} handlers
 * @returns {HTMLElement}
 */
export function answerView(answer, turn, tools, { copy, askAgain }) {
  const { words } = tools;
  const body = answer.refusal
    ? [refusalView(answer.refusal, turn, tools)]
    : [statementsView(answer, turn, tools), sourceList(answer.citations, turn, tools)];
  const notes = notesOf(answer, words).map((text) => element("p", { class: "note" }, text));
  const again = answer.stopped ? smallButton("again", words.say("answer.again"), askAgain) : null;
  const actions = element("div", { class: "actions" }, again, smallButton("copy", words.say("answer.copy"), copy));
  return entryView(answer.question, answer.language, words, { "data-testid": "answer" }, ...notes, ...body, actions);
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

/**
 * @param {string} question
 * @param {string | null} language
 * @param {Words} words
 * @param {Record<string, string>} attributes
 * @param {...(Node | null)} body
 * @returns {HTMLElement}
 */
export function entryView(question, language, words, attributes, ...body) {
  const title = element("h2", { class: "asked", lang: language, tabindex: "-1" },
    unseen(`${words.say("answer.question")}: `), question);
  return element("article", { class: "entry", ...attributes }, title, ...body);
}

/** An extractive answer is a row of quotes, one a line; any other is prose. */
function statementsView({ mode, segments, citations }, turn, tools) {
  const lines = element("div", { class: "statements" });
  const view = new SegmentViews(citations, turn, tools);
  for (const statement of mode === "extractive" ? statementsOf(segments) : [segments]) {
    lines.append(element("p", { class: "statement" }, ...statement.map((segment) => view.of(segment))));
  }
  return lines;
}

/** Segments to elements, in order: a chip is named by its place among the chips of the answer. */
export class SegmentViews {
  #chips = 0;

  /**
   * @param {Citation[]} citations Looked into as segments come.
   * @param {number} turn
   * @param {PageTools} tools
   */
  constructor(citations, turn, tools) {
    this.citations = citations;
    this.turn = turn;
    this.tools = tools;
  }

  /**
   * @param {Segment} segment
   * @returns {Node}
   */
  of(segment) {
    if (segment.type === "text") return textView(segment);
    this.#chips += 1;
    return citationChip(this.citations[segment.citation], `chip-${this.turn}-${this.#chips}`, this.tools);
  }
}

/** @param {TextSegment} segment */
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

function smallButton(name, label, click) {
  return element("button", { type: "button", class: "small", "data-testid": name, click }, label);
}
