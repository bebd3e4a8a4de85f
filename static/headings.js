/**
 * Headings get levels without gaps, from 1, so that whoever moves by them is never one short.
 *
 * @param {Block[]} blocks @returns {Block[]}
 */
export function stepHeadings(blocks) {
  /** @type {number[]} The written levels of the headings above the present one. */
  const above = [];
  return blocks.map((block) => {
    if (block.type !== "heading") return block;
    while (above.at(-1) >= block.level) above.pop();
    above.push(block.level);
    return { ...block, level: above.length };
  });
}
