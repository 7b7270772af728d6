/**
 * Splits growing Markdown into parts that no longer change and a tail that may. Pure.
 * What is rendered once is never rendered again, so that a stream neither flickers nor slows down.
 */


const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const CONTINUES = /^(\s+\S|[-*+] |\d+[.)] |\||>)/;

/** Where the last blank line stands that surely ends a block; `from` is where the unsettled text begins. */
export function settled(text: string, from: number): number {
  let fence = "";
  let safe = from;
  let blank = -1;
  for (let start = from; start < text.length; ) {
    const end = text.indexOf("\n", start);
    if (end < 0) break;
    const line = text.slice(start, end);
    const mark = FENCE.exec(line)?.[1] ?? "";
    if (fence) {
      if (mark.startsWith(fence) && line.trim() === mark) {
        fence = "";
        blank = end + 1;
      }
    } else if (mark) {
      if (blank === start) safe = start;
      fence = mark;
      blank = -1;
    } else if (line.trim() === "") {
      blank = end + 1;
    } else {
      if (blank === start && !CONTINUES.test(line)) safe = start;
      blank = -1;
    }
    start = end + 1;
  }
  return safe;
}
