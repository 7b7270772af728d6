/**
 * The hunks of a unified diff, numbered as the server numbers them. Pure.
 * Not here: making a diff, showing it.
 */

/** One hunk: `start` and `lines` are 0-based and count in the proposed text. */
export interface Hunk {
  /** From 1, in the order of the file. */
  readonly number: number;
  readonly start: number;
  readonly lines: number;
  readonly added: number;
  readonly removed: number;
  /** The first changed line, for lists. */
  readonly preview: string;
}

const HEADER = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Hunks by the name of the file after the change, as the diff writes it (`b/…` without the `b/`). */
export function hunksByFile(diff: string): ReadonlyMap<string, readonly Hunk[]> {
  const found = new Map<string, Hunk[]>();
  const lines = diff.split("\n");
  let name = "";
  for (let index = 0; index < lines.length; ) {
    const line = lines[index] ?? "";
    const header = HEADER.exec(line);
    if (header) {
      const old = Number(header[2] ?? 1);
      const fresh = Number(header[4] ?? 1);
      const body = bodyOf(lines, index + 1, old, fresh);
      const file = found.get(name) ?? [];
      file.push(toHunk(file.length + 1, Math.max(0, Number(header[3]) - 1), fresh, body));
      found.set(name, file);
      index += 1 + body.length;
      continue;
    }
    if (line.startsWith("--- ") && (lines[index + 1] ?? "").startsWith("+++ ")) {
      name = nameOf(line.slice(4), (lines[index + 1] ?? "").slice(4));
      if (!found.has(name)) found.set(name, []);
      index += 2;
      continue;
    }
    index += 1;
  }
  return found;
}

/** The hunk a line of the proposed text is in, or the nearest one. */
export function hunkAt(hunks: readonly Hunk[], line: number): Hunk | undefined {
  const distance = (hunk: Hunk): number => Math.max(hunk.start - line, line - (hunk.start + hunk.lines - 1), 0);
  return [...hunks].sort((first, second) => distance(first) - distance(second))[0];
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

function toHunk(number: number, start: number, lines: number, body: readonly string[]): Hunk {
  const before = body.findIndex((line) => line.startsWith("+") || line.startsWith("-"));
  const added = body.filter((line) => line.startsWith("+"));
  const removed = body.filter((line) => line.startsWith("-"));
  return {
    number,
    start: start + Math.max(0, before),
    lines: Math.max(1, lines - Math.max(0, before)),
    added: added.length,
    removed: removed.length,
    preview: (added[0] ?? removed[0] ?? "").slice(1).trim(),
  };
}

function nameOf(before: string, after: string): string {
  const chosen = after.startsWith("/dev/null") ? before : after;
  return chosen.replace(/\t.*$/, "").replace(/^[ab]\//, "");
}
