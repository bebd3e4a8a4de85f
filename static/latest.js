/**
 * Keep one piece of work at a time: a new one stops the one before, whose late end is then passed over.
 */
export class Latest {
  /** @type {AbortController | null} */
  #current = null;

  /**
   * @template T
   * @param {(signal: AbortSignal) => Promise<T>} work
   * @param {{done: (result: T) => void, failed: (error: unknown) => void}} handlers
   *   At most one is called, and only if nothing newer has begun and nobody stopped it.
   * @returns {Promise<void>} Never rejects by the work's own failure.
   */
  async run(work, { done, failed }) {
    this.stop();
    const controller = new AbortController();
    this.#current = controller;
    let report;
    try {
      const result = await work(controller.signal);
      report = () => done(result);
    } catch (error) {
      report = () => failed(error);
    }
    if (this.#current !== controller) return;
    this.#current = null;
    report();
  }

  /** @returns {boolean} Whether there was anything to stop. */
  stop() {
    if (!this.#current) return false;
    this.#current.abort();
    this.#current = null;
    return true;
  }
}

/**
 * @param {number} seconds
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function sleep(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}
