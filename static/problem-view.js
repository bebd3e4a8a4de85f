import { element } from "./dom.js";

/** Another try of the same request can only fail again. */
const HOPELESS = new Set([
  "invalid-request", "question-empty", "question-without-words", "question-too-long", "body-too-large",
  "unsupported-media-type", "unauthorized", "not-found",
]);

/**
 * @param {string} slug
 * @param {import("./i18n.js").Words} words
 * @returns {string}
 */
export function problemText(slug, words) {
  return words.say(words.has(`problem.${slug}`) ? `problem.${slug}` : "problem.internal");
}

/**
 * @param {string} slug
 * @param {string} text
 * @param {import("./i18n.js").Words} words
 * @param {() => void} retry Offered where another try may help.
 * @returns {HTMLElement}
 */
export function problemView(slug, text, words, retry) {
  const button = HOPELESS.has(slug) ? null
    : element("button", { type: "button", class: "quiet", click: retry }, words.say("problem.retry"));
  return element("div", { class: "problem", "data-testid": "error", "data-problem": slug },
    element("p", {}, text), button);
}
