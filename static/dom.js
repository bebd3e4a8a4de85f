/**
 * @param {string} tag
 * @param {Record<string, string | boolean | null | ((event: Event) => void)>} [attributes]
 *   A function listens to the event of its name (`click`); null and false leave it out; true makes it empty.
 * @param {...(Node | string | null)} children A string becomes text, never markup; null is left out.
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/**
 * @param {string} text For screen readers only.
 * @returns {HTMLElement}
 */
export function unseen(text) {
  return element("span", { class: "unseen" }, text);
}

/**
 * @param {string} id
 * @returns {HTMLElement} One that stands in index.html.
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no element with the id "${id}"`);
  return found;
}
