/**
 * What a test has a page run before its own scripts: it notices what must never run, and looks for what must never be
 * there. `given` is what index.html holds: how many of each tag, its attributes and its ids.
 */
(given) => {
  const noticed = [];
  const betrays = (code) => /malo\.invalid|__ran/.test(String(code));
  for (const name of ["alert", "confirm", "prompt", "print", "open", "MsgBox"]) window[name] = () => noticed.push(name);
  for (const name of ["eval", "Function", "setTimeout", "setInterval"]) {
    const notice = (code) => betrays(code) && noticed.push(name);
    window[name] = new Proxy(window[name], {
      apply: (called, self, values) => (notice(values[0]), Reflect.apply(called, self, values)),
      construct: (called, values) => (values.forEach(notice), Reflect.construct(called, values)),
    });
  }
  Object.defineProperty(window, "__ran", { set: () => noticed.push("__ran") });
  const prototypes = [Object, Array, String, Function, Node, Element].map((made) => made.prototype);
  const namesOf = () => prototypes.map((prototype) => Reflect.ownKeys(prototype).map(String).join()).join();
  const before = namesOf();

  // these stand in index.html and are never made; the others may be made as often as is needed
  const FIXED = "html head meta title link script body header h1 nav main form label textarea input select dialog"
    + " noscript footer";
  const MADE = "div section article p h2 h3 h4 h5 h6 span strong em q a button ul ol li br hr blockquote pre code"
    + " mark table thead tbody tr th td time i option";
  const ATTRIBUTES = "class id lang tabindex title type name value href rel target start scope disabled datetime open"
    + " hidden role readonly placeholder style data-testid data-verdict data-problem aria-label aria-expanded aria-busy"
    + " aria-hidden aria-invalid aria-describedby aria-labelledby aria-current";
  const ADDRESSES = new Set("href src srcset action formaction data poster ping background xlink:href".split(" "));
  const made = new Set(MADE.split(" "));
  const fixed = new Set(FIXED.split(" "));
  const attributes = new Set([...ATTRIBUTES.split(" "), ...given.attributes]);
  const ids = new Set(given.ids);
  const OURS = /^(chip|source|nearest|browsed)-/;
  const inHead = (node) => node.parentNode === document.head;

  const faultsOf = (node) => {
    const { localName: tag, namespaceURI: space, id } = node;
    const faults = [];
    if (!made.has(tag) && !fixed.has(tag)) faults.push(`the tag ${tag}`);
    if (!space.endsWith("/xhtml")) faults.push(`the namespace ${space}`);
    if (node.shadowRoot) faults.push("a shadow");
    if (id && !ids.has(id) && !OURS.test(id)) faults.push(`the id ${id}`);
    for (const { name, value } of node.attributes) {
      if (!attributes.has(name) || name.startsWith("on")) faults.push(`the attribute ${name}`);
      if (name === "name" && !inHead(node)) faults.push(`the name ${value}`);
      if (ADDRESSES.has(name) && !inHead(node) && !(tag === "a" && /^(https?:\/\/|#)/.test(value))) {
        faults.push(`the address ${value}`);
      }
      const moved = id === "preview" && /^(?:(?:top|left): -?[\d.]+px;\s*)+$/.test(value);
      if (name === "style" && !moved) faults.push(`the style ${value}`);
    }
    return faults;
  };

  /** Every fault below an element, or of the whole page. */
  const faults = (root = document) => {
    const nodes = [...root.querySelectorAll("*")];
    const found = nodes.flatMap((node) => faultsOf(node).map((fault) => `${fault} in ${node.outerHTML.slice(0, 200)}`));
    if (root === document) {
      for (const tag of fixed) {
        const count = nodes.filter(({ localName }) => localName === tag).length;
        if (count !== (given.tags[tag] ?? 0)) found.push(`${count} times the tag ${tag}`);
      }
    }
    if (window.length > 0) found.push("a frame");
    if (namesOf() !== before) found.push("a prototype has changed");
    return [...found, ...noticed.splice(0).map((name) => `${name} was called`)];
  };

  const until = async (holds) => {
    for (let turn = 0; turn < 5000; turn += 1) {
      if (holds()) return;
      await new Promise((resolve) => { setTimeout(resolve, 1); });
    }
    throw new Error(`never so: ${holds}`);
  };

  /** Do something for each of some things, and gather the faults that there are after each in a part of the page. */
  const each = async (things, act, part = "main") => {
    const found = [];
    for (const thing of things) {
      await act(thing);
      for (const root of document.querySelectorAll(part)) {
        found.push(...faults(root).map((fault) => `after ${things.indexOf?.(thing)}: ${fault}`));
      }
    }
    return [...found, ...faults()];
  };

  Object.defineProperty(window, "watch", { value: Object.freeze({ faults, each, until, noticed: () => noticed.splice(0) }) });
}
