import { formatDate } from "./i18n.js";
import { webAddress } from "./links.js";
import { notesOf } from "./notes.js";
import { plainLines, plainQuote } from "./quote-parts.js";
import { formatRoute } from "./route.js";
import { labelOf, rangeOf, sourcesOf, statementsOf } from "./statements.js";

/** Answers to keep: Markdown to read, JSON to work with. Whatever people or cards wrote stands there as plain words. */

const MARKS = /[\\`*_[\]<>#~|]|&(?=#?\w+;)/g;
/** What begins a list or an underline, or makes a link of the label before it. */
const BEGINNING = /^(\d{1,9})([.)])(?=\s|$)|^([-+=:(])/;
/** What many readers of Markdown take for a link although nothing marks it as one. */
const ADDRESS = /\/\/|www\.|@/i;

/** @param {Answer} answer @param {Words} words @param {string} pageUrl Without a hash. @returns {string} */
export function answerAsMarkdown(answer, words, pageUrl) {
  return asText(answerBlocks(answer, words, pageUrl));
}

/** @param {Answer[]} answers The oldest first. @param {Words} words @param {Keeping} keeping @returns {string} */
export function conversationAsMarkdown(answers, words, { pageUrl, date }) {
  return asText([
    `# ${plain(words.say("page.title.ask"))}`,
    plain(formatDate(words.language, date.slice(0, 10))),
    ...answers.flatMap((answer) => answerBlocks(answer, words, pageUrl)),
    "---",
    plain(words.say("page.note")),
  ]);
}

/** @param {Answer[]} answers @param {Keeping} keeping @returns {string} With every answer as it was received. */
export function conversationAsJson(answers, { pageUrl, date }) {
  return `${JSON.stringify({ exported_at: date, page: pageUrl, answers }, null, 2)}\n`;
}

function asText(blocks) {
  return `${blocks.join("\n\n")}\n`;
}

function answerBlocks(answer, words, pageUrl) {
  const { mode, segments, citations, refusal } = answer;
  const before = [`## ${plain(answer.question)}`, ...notesOf(answer, words).map((note) => `> ${plain(note)}`)];
  if (refusal) return [...before, ...refusalBlocks(refusal, words, pageUrl)];
  const statements = mode === "extractive" ? statementsOf(segments) : [segments];
  const sources = sourcesOf(citations).map((source) => sourceItem(source, words, pageUrl));
  return [
    ...before,
    ...statements.map((statement) => statementText(statement, citations)),
    ...(sources.length > 0 ? [`### ${plain(words.say("sources.title"))}`, sources.join("\n")] : []),
  ];
}

function refusalBlocks({ reason, nearest }, words, pageUrl) {
  const key = words.has(`refusal.${reason}`) ? `refusal.${reason}` : "refusal.other";
  const cards = nearest.map((card) => `- ${cardLink(card, null, pageUrl)}`);
  return [
    `### ${plain(words.say("refusal.title"))}`,
    plain(words.say(key)),
    ...(cards.length > 0 ? [`#### ${plain(words.say("refusal.nearest"))}`, cards.join("\n")] : []),
  ];
}

function statementText(segments, citations) {
  const pieces = segments.map((segment) => {
    if (segment.type === "text") {
      const lines = plainLines(segment.text).map(plain).join("\\\n");
      return `${/^\s/.test(segment.text) ? " " : ""}${lines}${/\s$/.test(segment.text) ? " " : ""}`;
    }
    const citation = citations[segment.citation];
    return citation ? ` [${labelOf(citation)}]` : "";
  });
  return pieces.join("").replace(/ {2,}/g, " ").trim();
}

function sourceItem({ number, citations }, words, pageUrl) {
  const [first] = citations;
  const range = citations.map(rangeOf).find((found) => found !== null) ?? null;
  const facts = [`- [${number}] ${cardLink(first, range, pageUrl)}`, ...factsOf(first, words)].join(" · ");
  return [facts, ...citations.map((citation) => quoteText(citation, words)).filter(Boolean)].join("\n  - ");
}

function factsOf({ language, license, source, accessed_at: accessed }, words) {
  const facts = [plain(words.has(`language.${language}`) ? words.say(`language.${language}`) : language)];
  if (license) facts.push(plain(words.say("source.license", { license })));
  if (source) facts.push(sourceFact(source, words));
  if (accessed) facts.push(plain(words.say("source.accessed", { date: formatDate(words.language, accessed) })));
  return facts;
}

function sourceFact(source, words) {
  const href = webAddress(source);
  if (href) return `<${href}>`;
  const name = source === "synthetic" ? words.say("source.synthetic") : source;
  return plain(words.say("source.origin", { source: name }));
}

function quoteText(citation, words) {
  const { verdict } = citation;
  const quote = plain(plainQuote(citation.quote));
  const parts = [quote && `«${quote}»`, verdict !== "valid" && words.say(`source.verdict.${verdict}`)];
  return parts.filter(Boolean).join(" — ");
}

function cardLink({ card_id: cardId, title }, range, pageUrl) {
  const address = `${pageUrl}${formatRoute({ cardId, range })}`;
  return `[${plain(title)}](${address.replace(/[()\\`]|&(?=#?\w+;)/g, "\\$&")})`;
}

/** On one line, and neither a mark nor an address in it: what looks like an address is code, which nobody links. */
function plain(text) {
  const line = text.replace(/[\n-\r]+/g, " ").trim();
  const escaped = line.replace(/`|[^\s`]+/g, (word) => (
    ADDRESS.test(word) ? `\`${word}\`` : word.replace(MARKS, "\\$&")
  ));
  return escaped.replace(BEGINNING, "$1\\$2$3");
}
