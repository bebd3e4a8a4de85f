/**
 * Give headings levels without gaps, so that whoever moves through a card by them is never one short: the first is of
 * level 1, and none is more than one deeper than the one it stands under.
 *
 * @param {import("./markdown.js").Block[]} blocks
 * @returns {import("./markdown.js").Block[]}
 */
export function stepHeadings(blocks) {
  /** @type {number[]} The written levels of the headings above the present one. */
  const above = [];
  return blocks.map((block) => {
    if (block.type !== "heading") return block;
    while (above.length > 0 && above[above.length - 1] >= block.level) above.pop();
    above.push(block.level);
    return { ...block, level: above.length };
  });
}
