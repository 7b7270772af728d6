/** Where a range of a text is after changes of the text. Pure. */

export interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

/** A part of a text and what it is replaced by. */
export interface TextChange {
  readonly range: Range;
  readonly text: string;
}

/** The range after a change: what is typed at its ends is outside of it, what overlaps it becomes part of it. */
export function shifted(range: Range, change: TextChange): Range {
  const { start: from, end: to } = change.range;
  const inserts = compare(from, to) === 0;
  const start = compare(range.start, to) >= 0 ? moved(range.start, change) : earlier(range.start, from);
  const after = compare(range.end, to);
  const end = after > 0 || (after === 0 && !inserts) ? moved(range.end, change) : compare(range.end, from) > 0 ? endOf(change) : range.end;
  return { start, end: compare(end, start) < 0 ? start : end };
}

/** A position behind a change. */
function moved(position: Position, change: TextChange): Position {
  const [before, now] = [change.range.end, endOf(change)];
  const character = position.line === before.line ? position.character - before.character + now.character : position.character;
  return { line: position.line - before.line + now.line, character };
}

/** Where the new text of a change ends. */
function endOf({ range: { start }, text }: TextChange): Position {
  const lines = text.split(/\r\n|\r|\n/);
  const last = lines.at(-1)?.length ?? 0;
  return lines.length === 1 ? { line: start.line, character: start.character + last } : { line: start.line + lines.length - 1, character: last };
}

function earlier(one: Position, other: Position): Position {
  return compare(one, other) <= 0 ? one : other;
}

function compare(one: Position, other: Position): number {
  return one.line - other.line || one.character - other.character;
}
