/**
 * The hunks of a unified diff, with the ids by which the server knows them. Pure.
 * Not here: making a diff, showing it.
 */

/** One hunk: `start` and `lines` are 0-based and count in the proposed text. */
export interface Hunk {
  /** What the server calls it; for a file that can only be decided about as a whole, where it is in its order. */
  readonly id: string;
  readonly start: number;
  readonly lines: number;
  readonly added: number;
  readonly removed: number;
  /** The first changed line, for lists. */
  readonly preview: string;
  /** The tests pass without it. */
  readonly unneeded?: true;
}

const HEADER = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(?:.*#([0-9a-f]+)$)?/;

/** A hunk as the diff writes it: `oldStart` is the 0-based line of the base before which it begins. */
interface RawHunk {
  readonly id: string | undefined;
  readonly oldStart: number;
  readonly newStart: number;
  readonly newLines: number;
  readonly body: readonly string[];
}

/** One file of a diff; `name` is the one after the change, as the diff writes it (`b/…` without the `b/`). */
interface RawFile {
  readonly name: string;
  readonly isNew: boolean;
  readonly isDeleted: boolean;
  readonly hunks: RawHunk[];
}

/** Hunks by the name of the file after the change; `unneeded` names those that the tests do not need, `name#id`. */
export function hunksByFile(diff: string, unneeded: readonly string[] = []): ReadonlyMap<string, readonly Hunk[]> {
  const marks = (name: string): Pick<Hunk, "unneeded"> => (unneeded.includes(name) ? { unneeded: true } : {});
  const toHunks = (file: RawFile): Hunk[] =>
    file.hunks.map((hunk, index) => ({ ...toHunk(hunk.id ?? String(index + 1), hunk), ...marks(`${file.name}#${hunk.id}`) }));
  return new Map(rawFiles(diff).map((file) => [file.name, toHunks(file)]));
}

/** Both sides of a file of the diff, given its text now; null is a side that is not there, undefined: it does not fit. */
export function sidesOf(diff: string, name: string, now: string): { base: string | null; text: string | null } | undefined {
  const file = rawFiles(diff).find((item) => item.name === name);
  if (!file) return undefined;
  const text = patched(file.isNew ? "" : now, file.hunks);
  return text === undefined ? undefined : { base: file.isNew ? null : now, text: file.isDeleted ? null : text };
}

/** The hunk a line of the proposed text is in, or the nearest one. */
export function hunkAt(hunks: readonly Hunk[], line: number): Hunk | undefined {
  const distance = (hunk: Hunk): number => Math.max(hunk.start - line, line - (hunk.start + hunk.lines - 1), 0);
  return [...hunks].sort((first, second) => distance(first) - distance(second))[0];
}

function rawFiles(diff: string): RawFile[] {
  const found: RawFile[] = [];
  const lines = diff.split("\n");
  for (let index = 0; index < lines.length; ) {
    const line = lines[index] ?? "";
    const header = HEADER.exec(line);
    if (header) {
      const [, oldStart, oldLines = "1", newStart, newLines = "1", id] = header;
      const body = bodyOf(lines, index + 1, Number(oldLines), Number(newLines));
      const first = Number(oldLines) === 0 ? Number(oldStart) : Number(oldStart) - 1; // nothing of the base: after that line
      found.at(-1)?.hunks.push({ id, oldStart: first, newStart: Math.max(0, Number(newStart) - 1), newLines: Number(newLines), body });
      index += 1 + body.length;
    } else if (line.startsWith("--- ") && (lines[index + 1] ?? "").startsWith("+++ ")) {
      const [before, after] = [line.slice(4), (lines[index + 1] ?? "").slice(4)];
      const [isNew, isDeleted] = [before.startsWith("/dev/null"), after.startsWith("/dev/null")];
      found.push({ name: nameOf(before, after), isNew, isDeleted, hunks: [] });
      index += 2;
    } else {
      index += 1;
    }
  }
  return found;
}

/** The text with the hunks in it; undefined where it does not have the lines they expect. */
function patched(base: string, hunks: readonly RawHunk[]): string | undefined {
  const lines = base.split("\n");
  const made: string[] = [];
  let at = 0;
  for (const hunk of hunks) {
    made.push(...lines.slice(at, hunk.oldStart));
    at = hunk.oldStart;
    for (const line of hunk.body) {
      if (line.startsWith("+")) made.push(line.slice(1));
      if (line.startsWith("+") || line.startsWith("\\")) continue;
      if (lines[at] !== line.slice(1)) return undefined;
      if (!line.startsWith("-")) made.push(line.slice(1));
      at += 1;
    }
  }
  return [...made, ...lines.slice(at)].join("\n");
}

function bodyOf(lines: readonly string[], from: number, old: number, fresh: number): string[] {
  const body: string[] = [];
  let [left, right] = [old, fresh];
  for (let index = from; index < lines.length; index++) {
    const line = lines[index] ?? "";
    if (left <= 0 && right <= 0 && !line.startsWith("\\")) break;
    body.push(line);
    if (line.startsWith("-")) left -= 1;
    else if (line.startsWith("+")) right -= 1;
    else if (!line.startsWith("\\")) [left, right] = [left - 1, right - 1];
  }
  return body;
}

function toHunk(id: string, { newStart, newLines, body }: RawHunk): Hunk {
  const before = Math.max(0, body.findIndex((line) => line.startsWith("+") || line.startsWith("-")));
  const added = body.filter((line) => line.startsWith("+"));
  const removed = body.filter((line) => line.startsWith("-"));
  return {
    id,
    start: newStart + before,
    lines: Math.max(1, newLines - before),
    added: added.length,
    removed: removed.length,
    preview: (added[0] ?? removed[0] ?? "").slice(1).trim(),
  };
}

function nameOf(before: string, after: string): string {
  const chosen = after.startsWith("/dev/null") ? before : after;
  return chosen.replace(/\t.*$/, "").replace(/^[ab]\//, "");
}
