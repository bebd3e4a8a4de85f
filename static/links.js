const WEB_ADDRESS = /^https?:\/\/[^\s\p{Cc}]+$/iu;

/**
 * @param {string} address
 * @returns {string | null} The address if a press may safely lead there (http and https only), else null.
 */
export function webAddress(address) {
  if (!WEB_ADDRESS.test(address)) return null;
  try {
    return new URL(address).href;
  } catch {
    return null;
  }
}
