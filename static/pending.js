import { entryView, SegmentViews } from "./answer.js";
import { element } from "./dom.js";

/**
 * An answer on its way: the question, then the cards it is made from, then its words as they come. Nothing of it is
 * announced piece by piece; the status line says when it is whole.
 */
export class PendingAnswer {
  /** @type {Segment[]} */ #segments = [];
  /** @type {Citation[]} */ #citations = [];
  /** @type {CardTitle[]} */ #sources = [];
  /** @type {HTMLElement} */ #statement;
  /** @type {SegmentViews} */ #views;

  /**
   * @param {string} question
   * @param {number} turn
   * @param {PageTools} tools
   */
  constructor(question, turn, tools) {
    this.question = question;
    this.turn = turn;
    this.tools = tools;
    this.node = element("article");
    this.draw();
  }

  /**
   * @param {string} event
   * @param {any} value
   */
  receive(event, value) {
    if (event === "sources") {
      this.#sources = value.retrieved;
      this.draw();
    } else if (event === "citation") {
      this.#citations[value.segment.citation] = value.citation;
      this.#add(value.segment);
    } else if (event === "delta") this.#add(value);
  }

  /** @returns {Answer | null} What has been shown so far as an answer; null if that is nothing. */
  partial() {
    const segments = this.#segments;
    if (segments.length === 0) return null;
    const [{ question }, citations] = [this, this.#citations];
    const language = segments.find(({ type }) => type === "text")?.["language"] ?? this.tools.words.language;
    return /** @type {any} */ ({ question, language, segments, citations, mode: "llm", stopped: true, refusal: null });
  }

  /** Draw what is there, again in another language; the pieces that follow are put behind. */
  draw() {
    const { words } = this.tools;
    this.#views = new SegmentViews(this.#citations, this.turn, this.tools);
    this.#statement = element("p", { class: "statement" }, ...this.#segments.map((segment) => this.#views.of(segment)));
    const begun = this.#segments.length > 0;
    const node = entryView(this.question, null, words, { "aria-busy": "true", "data-testid": "pending" },
      this.#sources.length > 0 ? readingView(this.#sources, words) : null,
      begun ? element("div", { class: "statements" }, this.#statement) : waitingView());
    this.node.replaceWith(node);
    this.node = node;
  }

  #add(segment) {
    this.#segments.push(segment);
    if (this.#segments.length === 1) this.draw();
    else this.#statement.append(this.#views.of(segment));
  }
}

function readingView(cards, words) {
  const items = cards.map(({ title, language }) => element("li", { lang: language }, title));
  return element("div", { class: "reading", "data-testid": "reading" },
    element("p", {}, words.say("answer.reading")), element("ul", {}, ...items));
}

function waitingView() {
  return element("div", { class: "pending-lines", "aria-hidden": "true" }, ...[1, 2, 3].map(() => element("i")));
}
