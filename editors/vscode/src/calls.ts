/** Calls of tools as cards: what each is about, what it prints, what it did to a file, how it ended. Pure. */
import { difference } from "./diff";
import type { CardKind, FileState, Run, Todo, ToolCard } from "./model";
import type { ToolFinished } from "./protocol";

const MOST_OUTPUT = 20_000;
const SUBJECTS = ["path", "file", "query", "pattern", "question", "command", "symbol", "url", "name"];
const KINDS: readonly (readonly [CardKind, RegExp])[] = [
  ["todo", /^todo/],
  ["ask", /^ask/i],
  ["plan", /^(create_plan|plan_)/],
  ["tests", /^(run_tests?|run_test_code|test_)|tests?$/],
  ["edit", /^(edit|write|multi_edit|insert|apply_patch|replace|rename|move|delete|create_file|undo_edit)/],
  ["command", /^run_|command|^cmd$|^bash$|^shell$/],
  ["search", /grep|glob|search|find|references|definition|symbols/],
  ["read", /^(read|view|list|show)/],
];

/** The card of a call that begins. */
export function cardOf(call: Readonly<Record<string, unknown>>): ToolCard {
  const name = String(call["name"] ?? "");
  const given = asObject(call["arguments"]);
  const card = kindOf(name, given);
  const before = textOf(given, "old_str");
  const after = textOf(given, "new_str") ?? textOf(given, "content");
  const shown = card === "edit" && after !== undefined ? difference(before ?? null, after) : undefined;
  return {
    kind: "tool",
    callId: String(call["id"] ?? ""),
    name,
    card,
    subject: String(call["subject"] ?? "") || subject(given),
    state: "running",
    output: "",
    ...(shown && { diff: shown.lines, added: shown.added, removed: shown.removed }),
  };
}

/** The card with the file's change, which comes while it is at work. */
export function withChange(card: ToolCard, known: FileState | undefined, change: FileState): ToolCard {
  const { lines, added, removed } = difference(known ? known.text : change.base, change.text);
  return { ...card, card: "edit", diff: lines, added, removed };
}

/** The card with some more that was printed. */
export function withOutput(card: ToolCard, text: string): ToolCard {
  return { ...card, output: tail(card.output + text.replaceAll(/\r(?!\n)/g, "\n")) };
}

/** The card with its result. What was printed live stays where the result says less. */
export function withResult(card: ToolCard, event: ToolFinished): ToolCard {
  const output = card.card === "command" && card.output ? card.output : tail(event.output);
  return {
    ...card,
    state: event.success ? "done" : "failed",
    output,
    summary: event.summary,
    ms: event.time_ms,
    ...(event.success ? {} : { error: (denied(event) ?? event.error ?? event.output).trim() }),
  };
}

/** What the user reads of a call that was not allowed: its output speaks to the model. */
function denied(event: ToolFinished): string | undefined {
  return event.status === "denied" ? event.summary : undefined;
}

/** The todo list after the result of a call: what the call asked for may have been refused. */
export function todosAfter(known: readonly Todo[], event: ToolFinished): readonly Todo[] {
  if (event.todos === undefined) return known;
  return event.todos.map(asObject).map((row) => ({ id: textOf(row, "id") ?? "", content: textOf(row, "content") ?? "", status: textOf(row, "status") ?? "pending" }));
}

/** The newest card at work for which a file's change is meant. */
export function editing(run: Run, path: string): number {
  const atWork = (block: Run["blocks"][number]): block is ToolCard => block.kind === "tool" && block.state === "running";
  const named = run.blocks.findIndex((block) => atWork(block) && block.subject !== "" && fits(path, block.subject));
  return named >= 0 ? named : run.blocks.findIndex((block) => atWork(block) && block.card === "edit");
}

export function lastLine(text: string): string {
  return (text.trim().split(/[\r\n]/).at(-1) ?? "").slice(0, 120);
}

function kindOf(name: string, given: Readonly<Record<string, unknown>>): CardKind {
  const known = KINDS.find(([, pattern]) => pattern.test(name))?.[0];
  return known ?? (typeof given["command"] === "string" ? "command" : "other");
}

function subject(given: Readonly<Record<string, unknown>>): string {
  for (const key of SUBJECTS) {
    const value = given[key];
    if (typeof value === "string" && value !== "") return value.replace(/\s+/g, " ").slice(0, 2000);
  }
  return "";
}

function fits(path: string, name: string): boolean {
  const [whole, part] = [path.replaceAll("\\", "/"), name.replaceAll("\\", "/").replace(/^\.\//, "")];
  return whole === part || whole.endsWith(`/${part}`);
}

function tail(text: string): string {
  return text.length > MOST_OUTPUT ? `…${text.slice(-MOST_OUTPUT)}` : text;
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function textOf(given: Readonly<Record<string, unknown>>, key: string): string | undefined {
  return typeof given[key] === "string" ? (given[key] as string) : undefined;
}
