/** @param {string} address @returns {string | null} Null unless a press may lead there: http and https only. */
export function webAddress(address) {
  try {
    return /^https?:\/\/[^\s\p{Cc}]+$/iu.test(address) ? new URL(address).href : null;
  } catch {
    return null;
  }
}
