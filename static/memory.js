/**
 * What the browser keeps for us: `local` for good, `session` for the tab. A browser that keeps nothing is no error.
 *
 * @param {"local" | "session"} kind
 * @param {string} key
 * @returns {string | null}
 */
export function recall(kind, key) {
  try {
    return window[`${kind}Storage`].getItem(key);
  } catch {
    return null;
  }
}

/**
 * @param {"local" | "session"} kind
 * @param {string} key
 * @param {string | null} value Null forgets it.
 */
export function remember(kind, key, value) {
  try {
    if (value === null) window[`${kind}Storage`].removeItem(key);
    else window[`${kind}Storage`].setItem(key, value);
  } catch {
    // chosen or asked again next time
  }
}
