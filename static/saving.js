import { element } from "./dom.js";

/**
 * @param {string} text
 * @returns {Promise<boolean>} Whether it could be copied; only pages from https or this machine have a clipboard.
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = /** @type {HTMLTextAreaElement} */ (element("textarea", { class: "unseen", readonly: true }));
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    box.value = text;
    document.body.append(box);
    box.select();
    const copied = document.execCommand("copy");
    box.remove();
    before?.focus();
    return copied;
  }
}

/**
 * @param {string} name
 * @param {string} text
 * @param {string} type
 */
export function saveFile(name, text, type) {
  const href = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = element("a", { href, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
