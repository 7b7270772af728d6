/** Calls of tools as cards that unfold: an edit with its diff, a command with what it printed, tests with their counts. */
import type { ToolCard } from "../state";
import { codicon, element, fileButton, filled } from "./dom";
import { highlighted, languageOf } from "./highlight";

const ICONS: Readonly<Record<ToolCard["card"], string>> = {
  edit: "edit",
  command: "terminal",
  search: "search",
  read: "file",
  tests: "beaker",
  todo: "checklist",
  plan: "list-ordered",
  ask: "question",
  other: "tools",
};
const MARKS: Readonly<Record<ToolCard["state"], string>> = { running: "loading", done: "check", failed: "error" };
const HITS = /^\S[^:\n]*:\d+[:-]/;
/** Lines of a diff that are drawn at first. */
const SHOWN = 120;

export interface Words {
  word(key: string, ...values: readonly unknown[]): string;
}

/** A card; `open` says whether the user had it unfolded before it was drawn anew. */
export function makeCard(card: ToolCard, { word }: Words, open: boolean | undefined): HTMLElement {
  const row = element("div", `tool ${card.card} ${card.state}`);
  const body = bodyOf(card, word);
  const mark = filled("span", "mark", codicon(MARKS[card.state]), element("span", "hidden", word(`call.${card.state}`)));
  const about = [mark, codicon(ICONS[card.card]), element("span", "name", title(card, word)), subjectOf(card, body.length > 0), result(card, word)];
  if (body.length === 0) {
    row.append(filled("div", "call", ...about));
  } else {
    const details = document.createElement("details");
    details.open = open ?? (card.card === "edit" && (card.diff?.length ?? 0) <= 24);
    details.append(filled("summary", "call", ...about), filled("div", "unfolded", ...body));
    row.append(details);
  }
  const last = card.output.trimEnd().split("\n").at(-1) ?? "";
  if (card.state === "running" && last) row.append(element("div", "live", last));
  return row;
}

function title(card: ToolCard, word: Words["word"]): string {
  return card.card === "other" ? card.name : word(`card.${card.card}`);
}

/** What it is about. What unfolds is a button itself and has none in it: there, the file is opened from within. */
function subjectOf(card: ToolCard, unfolds: boolean): HTMLElement | undefined {
  const { subject } = card;
  if (!subject) return undefined;
  return isFile(card) && !unfolds ? fileButton(subject, subject) : element("code", "subject", subject.slice(0, 300));
}

function isFile({ card, subject }: ToolCard): boolean {
  return card === "edit" || (card === "read" && /\.\w+$/.test(subject));
}

/** What came out, in a few words. */
function result(card: ToolCard, word: Words["word"]): HTMLElement {
  const made = element("span", "result");
  if (card.added !== undefined && card.state !== "failed") {
    made.append(element("span", "added", `+${card.added}`), " ", element("span", "removed", `−${card.removed ?? 0}`));
  } else if (card.summary) {
    made.textContent = card.summary;
  } else if (card.card === "search" && card.state === "done") {
    const hits = card.output.split("\n").filter((line) => HITS.test(line)).length;
    if (hits > 0) made.textContent = word("hits", hits);
  } else if (card.card === "command" && card.state === "failed" && card.error && card.error.length < 40) {
    made.textContent = card.error;
  } else if (card.ms !== undefined && card.ms > 2000) {
    made.textContent = word("seconds", (card.ms / 1000).toFixed(0));
  }
  return made;
}

function bodyOf(card: ToolCard, word: Words["word"]): HTMLElement[] {
  const parts: HTMLElement[] = [];
  // They stand above the input, and what was answered below.
  if (card.card === "todo" || (card.card === "ask" && card.state !== "failed")) return parts;
  if (card.card === "command" && card.subject) {
    const line = element("pre", "commandline");
    line.innerHTML = highlighted(card.subject, "bash") ?? "";
    parts.push(line);
  }
  if (card.diff?.length && card.state !== "failed") parts.push(diffOf(card, word));
  else if (card.output.trim() && (card.card !== "edit" || card.state === "failed")) {
    const printed = element("pre", "printed", card.output.trimEnd());
    printed.tabIndex = 0;
    parts.push(printed);
  }
  if (parts.length > 0 && card.subject && isFile(card)) parts.unshift(filled("div", "opens", fileButton(card.subject, card.subject)));
  if (card.error && card.error !== card.output.trim() && !card.output.includes(card.error)) parts.push(element("div", "reason", card.error));
  return parts;
}

function diffOf(card: ToolCard, word: Words["word"]): HTMLElement {
  const language = languageOf(card.subject);
  const lines = card.diff ?? [];
  const table = element("div", "diff");
  table.tabIndex = 0;
  table.setAttribute("role", "group");
  table.setAttribute("aria-label", word("diffOf", card.subject));
  const draw = (from: number, to: number): void => {
    for (const line of lines.slice(from, to)) table.append(lineOf(line, language, word));
  };
  draw(0, SHOWN);
  if (lines.length > SHOWN) {
    const more = element("button", "more", word("showMoreLines", lines.length - SHOWN));
    more.addEventListener("click", () => {
      more.remove();
      draw(SHOWN, lines.length);
    });
    return filled("div", "diffbox", table, more);
  }
  return table;
}

function lineOf(line: string, language: string, word: Words["word"]): HTMLElement {
  const sign = line[0] ?? " ";
  if (sign === "@") return element("div", "jump", word("line", line.slice(2)));
  const row = element("div", sign === "+" ? "line plus" : sign === "-" ? "line minus" : "line");
  const text = element("span", "text");
  const code = highlighted(line.slice(1), language);
  if (code === undefined) text.textContent = line.slice(1);
  else text.innerHTML = code;
  row.append(element("span", "sign", sign === "-" ? "−" : sign), text);
  return row;
}
