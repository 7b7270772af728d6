/** What changed between two texts, line by line: Myers' algorithm, with a limit. Pure. */

const CONTEXT = 2;
/** More differing lines than this are told as one replaced part. */
const MOST_EDITS = 400;

export interface Difference {
  /** Lines that begin with a blank, `+`, `-`; `@ n` is a jump to line n of the new text. Cut after `most`. */
  readonly lines: readonly string[];
  readonly added: number;
  readonly removed: number;
}

/** The difference of two texts; null is a file that is not there. */
export function difference(before: string | null, after: string | null, most = 400): Difference {
  const [old, now] = [split(before), split(after)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const middle = script(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  const added = middle.filter((line) => line.startsWith("+")).length;
  const removed = middle.filter((line) => line.startsWith("-")).length;
  if (middle.length === 0) return { lines: [], added, removed };
  const leading = old.slice(Math.max(0, head - CONTEXT), head).map((line) => ` ${line}`);
  const trailing = old.slice(old.length - tail, old.length - tail + CONTEXT).map((line) => ` ${line}`);
  const lines = folded([...leading, ...middle, ...trailing], Math.max(0, head - CONTEXT));
  return { lines: lines.slice(0, most), added, removed };
}

function split(text: string | null): string[] {
  if (text === null || text === "") return [];
  const lines = text.split(/\r\n|\r|\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Long runs of equal lines become jumps. */
function folded(lines: readonly string[], first: number): string[] {
  const made: string[] = [];
  let line = first;
  const near = (at: number): boolean =>
    lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some((text) => !text.startsWith(" "));
  let gap = true;
  lines.forEach((text, at) => {
    if (!text.startsWith("-")) line += 1;
    if (!near(at)) gap = true;
    else {
      if (gap) made.push(`@ ${text.startsWith("-") ? line + 1 : line}`);
      gap = false;
      made.push(text);
    }
  });
  return made;
}

/** The shortest script that makes one list of the other: removed, added and equal lines. */
function script(old: readonly string[], now: readonly string[]): string[] {
  const trace = search(old, now);
  if (!trace) return [...old.map((line) => `-${line}`), ...now.map((line) => `+${line}`)];
  const made: string[] = [];
  let [x, y] = [old.length, now.length];
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const ends = trace[edits] as Map<number, number>;
    const diagonal = x - y;
    const down = diagonal === -edits || (diagonal !== edits && (ends.get(diagonal - 1) ?? -1) < (ends.get(diagonal + 1) ?? -1));
    const previous = down ? diagonal + 1 : diagonal - 1;
    const from = edits === 0 ? 0 : (ends.get(previous) ?? 0);
    const start = edits === 0 ? 0 : from - previous;
    while (x > from && y > start) made.push(` ${old[--x] ?? ""}`), y--;
    if (edits > 0) made.push(down ? `+${now[--y] ?? ""}` : `-${old[--x] ?? ""}`);
  }
  return made.reverse();
}

/** How far each diagonal was reached before each edit; undefined when there are too many. */
function search(old: readonly string[], now: readonly string[]): Map<number, number>[] | undefined {
  const trace: Map<number, number>[] = [];
  const ends = new Map<number, number>([[1, 0]]);
  for (let edits = 0; edits <= Math.min(MOST_EDITS, old.length + now.length); edits++) {
    trace.push(new Map(ends));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down = diagonal === -edits || (diagonal !== edits && (ends.get(diagonal - 1) ?? -1) < (ends.get(diagonal + 1) ?? -1));
      let x = down ? (ends.get(diagonal + 1) ?? 0) : (ends.get(diagonal - 1) ?? 0) + 1;
      let y = x - diagonal;
      while (x < old.length && y < now.length && old[x] === now[y]) x++, y++;
      ends.set(diagonal, x);
      if (x >= old.length && y >= now.length) return trace;
    }
  }
  return undefined;
}
