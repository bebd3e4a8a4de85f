/**
 * The shapes of the page's data, for editors and `tsc`; no browser loads this file. Having neither imports nor exports
 * makes them global.
 */

// ---- What the server sends

type Verdict = "valid" | "weak" | "unsupported" | "unknown";

/** A quote and its place in the card; where it does not hold, the quote is empty and so is its place. */
interface Citation {
  number: number;
  card_id: string;
  title: string;
  url: string;
  language: string;
  license: string | null;
  source: string | null;
  /** `2026-11-30` */
  accessed_at: string | null;
  quote: string;
  /** In code points of the card's text, as `end` is. */
  start: number | null;
  end: number | null;
  score: number;
  verdict: Verdict;
}

interface TextSegment {
  type: "text";
  text: string;
  language: string;
  /** False for a sentence that cites cards which do not say so. */
  supported?: boolean;
}

interface CitationSegment {
  type: "citation";
  /** Its place in the answer's `citations`, from 0. */
  citation: number;
  number: number;
  card_id: string;
}

type Segment = TextSegment | CitationSegment;

/** A card named, not quoted. */
interface CardTitle {
  card_id: string;
  title: string;
  language: string;
}

interface RetrievedCard extends CardTitle {
  url: string;
  score: number;
  dense_score: number;
  lexical_score: number;
  rank_score: number;
  rerank_score: number | null;
  chunk_index: number;
}

interface Refusal {
  /** `below_threshold`, `no_cards`, `no_evidence` or `llm_refused`, and others that may come. */
  reason: string;
  best_score: number | null;
  threshold: number;
  nearest: CardTitle[];
}

interface Answer {
  request_id: string;
  question: string;
  /** What was searched for in place of the question, where earlier ones had to complete it. */
  searched: string | null;
  /** It is longer than the embedding model reads: its end counted by its words alone. */
  question_truncated: boolean;
  /** The text with a marker `[cite:card-id]` for each citation that holds. */
  answer: string;
  segments: Segment[];
  /** Of the question. */
  language: string;
  mode: "extractive" | "llm";
  /** A language model should have written it, and could not. */
  degraded: boolean;
  degraded_reason: string | null;
  refusal: Refusal | null;
  citations: Citation[];
  rejected: Partial<Record<"unknown" | "malformed" | "withheld", number>>;
  /** Best first. */
  retrieved: RetrievedCard[];
  index_version: string;
  timings_ms: Record<string, number>;
  /** Ours: what had been shown when it was stopped; not all of the rest is there then. */
  stopped?: boolean;
}

/** A question to begin with. */
interface Suggestion {
  question: string;
  language: string;
  card_id: string;
}

/** What was asked before, and answered. */
interface Turn {
  question: string;
  answer: string;
}

/** An entry of the list of cards. */
interface CardSummary extends CardTitle {
  topics: string[];
  questions: string[];
}

/** What is known of a card, or of a citation of it. */
type Facts = Pick<Citation, "language" | "license" | "source" | "accessed_at">;

interface Card extends CardTitle {
  topics: string[];
  license: string | null;
  source: string | null;
  accessed_at: string | null;
  text: string;
}

/** A server-sent event; its data are still text. */
interface StreamEvent {
  event: string;
  data: string;
}

// ---- Calls

type Problem = import("./api.js").Problem;
type Api = ReturnType<typeof import("./api.js").createApi>;

interface CallOptions {
  signal: AbortSignal;
  /** Told before each wait for a server that is not ready yet. */
  onWait?(seconds: number): void;
  /** In place of the token of the tab. */
  token?: string;
}

interface AskOptions extends CallOptions {
  history?: Turn[];
  /** Told of what a stream brings before the answer: `sources`, `delta`, `citation`. */
  onEvent?(event: string, value: unknown): void;
}

interface ApiSurroundings {
  fetch: typeof globalThis.fetch;
  token(): string | null;
  /** Rejects once the signal aborts. */
  sleep(seconds: number, signal: AbortSignal): Promise<void>;
  /** Without a sign of life. */
  timeoutSeconds?: number;
}

// ---- The page

/** What the status line says, in whichever language. */
type Status = (words: Words) => string;

/** What most views need. */
interface PageTools {
  words: Words;
  openCard: OpenCard;
  preview: import("./preview.js").Preview;
}

type Language = "es" | "en";

/** What renders text in one language. */
interface Words {
  language: Language;
  /** The message of a key, filled in; with a value `count`, its form for that number. */
  say(key: string, values?: object): string;
  has(key: string): boolean;
}

/** From and to where, in code points of a card's text. */
interface Place {
  start: number;
  end: number;
}

interface OpenTarget {
  cardId: string;
  range: Place | null;
  /** The words expected there. */
  quote?: string;
}

/** `opener` gets the focus back. */
type OpenCard = (target: OpenTarget, opener: HTMLElement) => void;

interface CardRoute {
  view: "card";
  cardId: string;
  range: Place | null;
}

interface CardsRoute {
  view: "cards";
  /** Empty for all of them, as `text` is. */
  topic: string;
  text: string;
}

/** What the part of the address after `#` names. */
type Route = CardRoute | CardsRoute;

/** A card and its quotes in an answer, in the order they are cited. */
interface SourceEntry {
  number: number;
  cardId: string;
  citations: Citation[];
}

/** One line of a quote. */
type QuotePart = { kind: "text"; text: string } | { kind: "row"; cells: string[] };

/** A stretch of a leaf of text. */
interface Piece {
  text: string;
  marked: boolean;
}

/** Where and for whom answers are kept as text; the date as in `2026-11-30`, with or without a time. */
interface Keeping {
  pageUrl: string;
  date: string;
}

// ---- Markdown: the tree

/** A leaf: the code points from `start` to `end` of the source are exactly `text`. */
interface TextNode extends Place {
  type: "text";
  text: string;
}

type InlineNode =
  | TextNode
  | { type: "break" }
  | { type: "emphasis" | "strong" | "code"; children: InlineNode[] }
  | { type: "link"; href: string; children: InlineNode[] };

interface Cell {
  type: "cell";
  align: "left" | "center" | "right" | null;
  children: InlineNode[];
}

interface Row {
  type: "row";
  header: boolean;
  children: Cell[];
}

interface Table {
  type: "table";
  /** The header first. */
  children: Row[];
}

interface Item {
  type: "item";
  children: Block[];
}

interface List {
  type: "list";
  ordered: boolean;
  /** The number of the first item. */
  first: number;
  /** Whether its items are lines rather than paragraphs. */
  tight: boolean;
  children: Item[];
}

type BlockBody =
  | { type: "paragraph"; children: InlineNode[] }
  | { type: "heading"; level: number; children: InlineNode[] }
  | { type: "fence"; children: TextNode[] }
  | { type: "rule" }
  | { type: "quote"; children: Block[] }
  | List
  | Table;

/** With its place in the source, in code points. */
type Block = BlockBody & Place;

interface MarkdownDocument {
  type: "document";
  children: Block[];
}

interface ViewOptions {
  /** What to mark. */
  range: Place | null;
  /** What a screen reader calls a table that scrolls sideways. */
  tableLabel: string;
}

// ---- Markdown: the parser, which counts in UTF-16 units

interface Source {
  text: string;
  /** From a UTF-16 index to code points. */
  codePoints: Uint32Array;
}

/** A stretch of the source; a line's ends before its line break. */
interface Span {
  from: number;
  to: number;
}

/** Text to be read as one run although its source may lie in several lines or cells. */
interface Content {
  source: Source;
  text: string;
  /** For each index of `text`, its index in the source. */
  positions: number[];
}

interface Line extends Span {
  /** Its indentation, a tab being four. */
  columns: number;
  /** Where its words begin. */
  at: number;
  words: string;
}

/** What the readers of blocks share. */
interface Frame {
  source: Source;
  /** Of the container, without its prefix. */
  lines: Line[];
  depth: number;
}

/** A block, and the line after it. */
interface Found {
  block: BlockBody;
  next: number;
}

/** What begins an item of a list. */
interface Marker {
  /** Items of one list share it: the bullet, or the sign after the number. */
  kind: string;
  ordered: boolean;
  number: number;
  /** Its indentation. */
  columns: number;
  /** The indentation that puts a later line inside the item. */
  inside: number;
  /** The indentation of the item's own text. */
  text: number;
  /** Where that text begins. */
  from: number;
  empty: boolean;
}

interface Delimiter extends Span {
  kind: "delimiter";
  /** What is left between `from` and `to`, neither closing nor opening anything, is text. */
  char: "*" | "_";
  /** Its place among the tokens. */
  index: number;
  /** How long it was. */
  length: number;
  canOpen: boolean;
  canClose: boolean;
  /** How many nodes end here. */
  closes: number;
  /** What begins here, the outermost first: 1 is emphasis, 2 strong. */
  opens: number[];
  href?: null;
}

/** A stretch of the content. */
type Token =
  | Delimiter
  | (Span & { kind: "text" | "code" | "break" | "open-link" | "close-link" | "nothing"; href?: string | null });

/** Inline Markdown being read. */
interface Scan {
  text: string;
  at: number;
  tokens: Token[];
  /** Delimiters that may still open emphasis. */
  openers: Record<"*" | "_", Delimiter[]>;
  /** Brackets that may still begin a link. */
  brackets: { index: number; image: boolean }[];
  /** Where runs of each length begin, the last one first. */
  backticks: number[][];
  /** For each `(`, its partner, or 0. */
  parentheses: Int32Array;
}
