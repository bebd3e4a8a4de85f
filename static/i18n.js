import { MESSAGES } from "./messages.js";

/**
 * @param {Language} language
 * @returns {Words}
 */
export function wordsIn(language) {
  const messages = MESSAGES[language];
  const has = (key) => Object.hasOwn(messages, key);
  const say = (key, values = {}) => {
    const message = messages[has(key) ? key : `${key}.${values.count === 1 ? "one" : "other"}`];
    if (message === undefined) throw new Error(`No message "${key}" in "${language}". Add it to messages.js`);
    return message.replace(/\{(\w+)\}/g, (hole, name) => String(values[name] ?? hole));
  };
  return { language, say, has };
}

/**
 * @param {string | null} remembered What the visitor chose before, if anything.
 * @param {readonly string[]} preferred The browser's languages, best first.
 * @returns {Language} Spanish where none is ours, the language of a card that states none.
 */
export function chooseLanguage(remembered, preferred) {
  const tags = [remembered ?? "", ...preferred].map((tag) => tag.toLowerCase().split("-", 1)[0]);
  return /** @type {Language | undefined} */ (tags.find((tag) => Object.hasOwn(MESSAGES, tag))) ?? "es";
}

/**
 * @param {Language} language
 * @returns {Language}
 */
export function otherLanguage(language) {
  return language === "es" ? "en" : "es";
}

/**
 * @param {Language} language
 * @param {string} isoDate `2026-11-30`
 * @returns {string} The date in words; what cannot be read as one stays as it is.
 */
export function formatDate(language, isoDate) {
  const date = new Date(`${isoDate}T00:00:00Z`);
  if (Number.isNaN(date.getTime())) return isoDate;
  return new Intl.DateTimeFormat(language, { dateStyle: "long", timeZone: "UTC" }).format(date);
}
