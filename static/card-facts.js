import { element } from "./dom.js";
import { formatDate } from "./i18n.js";
import { webAddress } from "./links.js";

/**
 * @param {Facts} facts Of a card or of a citation of it.
 * @param {Words} words
 * @returns {HTMLElement} Language, licence, source and date on one line; what is not known is left out.
 */
export function cardFacts(facts, words) {
  const language = words.has(`language.${facts.language}`) ? words.say(`language.${facts.language}`) : facts.language;
  const parts = [
    element("span", {}, language),
    facts.license && element("span", {}, words.say("source.license", { license: facts.license })),
    facts.source && sourceFact(facts.source, words),
    facts.accessed_at && element("time", { datetime: facts.accessed_at }, words.say("source.accessed", {
      date: formatDate(words.language, facts.accessed_at),
    })),
  ];
  const known = parts.filter(Boolean);
  return element("p", { class: "facts" }, ...known.flatMap((part, at) => (at > 0 ? [" · ", part] : [part])));
}

function sourceFact(source, words) {
  const href = webAddress(source);
  if (href) return element("a", { href, rel: "noopener noreferrer", target: "_blank" }, source);
  const name = source === "synthetic" ? words.say("source.synthetic") : source;
  return element("span", {}, words.say("source.origin", { source: name }));
}
