/**
 * Splits growing Markdown into parts that no longer change and a tail that may. Pure.
 * What is rendered once is never rendered again, so that a stream neither flickers nor slows down.
 */

/** Characters after which a part ends at the next block: small, so that showing one takes no time. */
const PART = 6000;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const CONTINUES = /^(\s+\S|[-*+] |\d+[.)] |\||>)/;

/** Where the parts end that no longer change; `from` is where the unsettled text begins. Read as far as asked. */
export function* settled(text: string, from: number, part = PART): Generator<number> {
  let told = from;
  let safe = from;
  for (safe of blocks(text, from)) {
    if (safe - told < part) continue;
    yield safe;
    told = safe;
  }
  if (safe > told) yield safe;
}

/** The blank lines that surely end a block. */
function* blocks(text: string, from: number): Generator<number> {
  let fence = "";
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
      if (blank === start) yield start;
      fence = mark;
      blank = -1;
    } else if (line.trim() === "") {
      blank = end + 1;
    } else {
      if (blank === start && !CONTINUES.test(line)) yield start;
      blank = -1;
    }
    start = end + 1;
  }
}
