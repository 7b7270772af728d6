/** One element for each kind of block. Not here: calls of tools (`cards.ts`), questions (`questions.ts`). */
import type { Block, Plan } from "../state";
import { makeCard } from "./cards";
import { baseName, button, element, fileButton, filled, iconButton } from "./dom";
import { makeQuestion } from "./questions";
import { drawSteps } from "./steps";
import { Stream } from "./stream";

/** A block on the page. `append` grows a text, `plan` tells a plan's steps. */
export interface BlockView {
  readonly element: HTMLElement;
  append(text: string): void;
  plan(plan: Plan): void;
}

export interface Context {
  readonly runId: string;
  word(key: string, ...values: readonly unknown[]): string;
  render(text: string): string;
}

const OUTPUT_LIMIT = 20_000;
const LISTED = 8;

/** What helps where the error has one of these codes. */
const HELP: readonly (readonly [RegExp, string, string])[] = [
  [/key|unauthor|401|403|forbidden/i, "setKey", "codeagent.setup"],
  [/model/i, "chooseModel", "codeagent.model.list"],
  [/network|connect|reach|refused|endpoint/i, "setUp", "codeagent.setup"],
];

export function makeBlock(block: Block, context: Context, old: HTMLElement | undefined): BlockView {
  switch (block.kind) {
    case "text": {
      const stream = new Stream((text) => context.render(text));
      stream.append(block.text);
      return grows(stream.element, (text) => stream.append(text));
    }
    case "output":
      return output(block.text);
    case "thought":
      return thought(block.text, context, old instanceof HTMLDetailsElement && old.open);
    case "plan":
      return planView(context);
    case "tool": {
      const details = old?.querySelector("details");
      return fixed(makeCard(block, context, details?.open));
    }
    default:
      return fixed(still(block, context));
  }
}

function still(block: Exclude<Block, { kind: "text" | "output" | "thought" | "plan" | "tool" }>, context: Context): HTMLElement {
  const { word } = context;
  switch (block.kind) {
    case "note":
      return element("p", "note", block.text);
    case "said":
      return filled("div", `prompt said${block.pending ? " pending" : ""}`, element("div", "words", block.text), block.pending ? element("span", "when", word("taken")) : undefined);
    case "error":
      return problem(block.text, block.code, context);
    case "command":
      return element("code", "command", `$ ${block.text}`);
    case "compacted":
      return element("p", "note", word("compacted", block.before, block.after));
    case "step":
      return element("h3", "step", block.text);
    case "exit":
      return element("p", "note", word("exit", block.exitCode, block.duration.toFixed(1)));
    case "question":
      return block.open ? element("div", "") : makeQuestion(block, context); // an open one stands above the input
    case "changes":
      return changes(block, context);
    case "applied":
      return applied(block, context);
    case "discarded":
      return element("p", "decision", word(block.partly ? "discardedPart" : "discarded", names(block.files)));
    case "ended":
      return ending(block, context);
  }
}

/** An error with the buttons that help. */
function problem(text: string, code: string | undefined, { word, runId }: Context): HTMLElement {
  const box = filled("div", "problem", element("p", "", text));
  box.setAttribute("role", "alert");
  const row = element("div", "row");
  const seen = new Set<string>();
  for (const [pattern, label, command] of HELP) {
    if (!pattern.test(`${code ?? ""} ${text}`) || seen.has(command)) continue;
    seen.add(command);
    row.append(button(word(label), "choice", { command }));
  }
  row.append(button(word("retry"), "choice", { say: "retry", run: runId }), button(word("showLog"), "choice", { command: "codeagent.showLogs" }));
  box.append(row);
  return box;
}

function changes(block: Extract<Block, { kind: "changes" }>, { word }: Context): HTMLElement {
  const what = block.foreign ? "foreign" : "proposed";
  const words = word(block.files.length === 1 ? `${what}One` : what, block.files.length, block.added, block.removed);
  return filled("div", "changes", element("div", "summary", words), ...(block.proof ?? []).map((line) => element("div", "proof", line)));
}

function applied(block: Extract<Block, { kind: "applied" }>, { word, runId }: Context): HTMLElement {
  const row = element("div", `decision row ${block.outcome}`);
  const missing = block.outcome === "none" ? "notApplied" : block.outcome === "unknown" ? "notConfirmed" : undefined;
  const key = missing ?? (block.undo ? "undone" : block.outcome === "partial" ? "partly" : (block.verdict ?? "applied"));
  const isFinal = missing !== undefined || key === "undone" || block.verdict === "kept";
  const about = block.conflicts.length > 0 ? block.conflicts : block.files.map(baseName);
  const listed = !isFinal && block.conflicts.length === 0 && about.length > 1; // by their names below
  row.append(element("span", "summary", word(key, block.reason ?? (listed ? word("files", about.length) : short(about, word)))));
  if (isFinal) return row;
  const undo = block.verdict === "reverted" ? "bringBack" : "undo";
  row.append(button(word("save"), "choice save", { say: "save", files: JSON.stringify(block.files) }));
  const [only] = block.files;
  if (only !== undefined && block.files.length === 1) {
    row.append(button(word(`${undo}One`), "choice undoFile", { undo: only, run: runId }));
    return row;
  }
  row.append(button(word(`${undo}Run`), "choice undo", { say: "undo", run: runId }));
  const files = element("ul", "accepted");
  for (const file of block.files.slice(0, LISTED)) {
    const back = iconButton("discard", word(`${undo}File`, baseName(file)), { undo: file, run: runId });
    back.classList.add("undoFile");
    files.append(filled("li", "", fileButton(file, baseName(file)), back));
  }
  return filled("div", "", row, files);
}

function short(all: readonly string[], word: Context["word"]): string {
  const listed = all.slice(0, LISTED).join(", ");
  return all.length > LISTED ? `${listed} ${word("moreFiles", all.length - LISTED)}` : listed;
}

function ending(block: Extract<Block, { kind: "ended" }>, context: Context): HTMLElement {
  const box = element("div", `ended ${block.status}`);
  if (block.error) box.append(problem(block.error, block.code, context));
  else if (block.summary) {
    const summary = element("div", "markdown");
    summary.innerHTML = context.render(block.summary);
    box.append(summary);
  }
  box.append(element("p", "status", context.word(block.status)));
  return box;
}

function output(text: string): BlockView {
  const shown = element("pre", "output");
  shown.tabIndex = 0;
  let whole = "";
  const append = (more: string): void => {
    whole = (whole + more).slice(-OUTPUT_LIMIT);
    shown.textContent = whole;
  };
  append(text);
  return grows(shown, append);
}

/** What the model thinks: folded, with its last line in sight while it grows. */
function thought(text: string, { word }: Context, open: boolean): BlockView {
  const box = document.createElement("details");
  box.className = "thought";
  box.open = open;
  const words = element("div", "unfolded", "");
  words.tabIndex = 0; // it scrolls
  const last = element("span", "line", "");
  box.append(filled("summary", "", element("span", "label", word("thought")), last), words);
  let whole = "";
  const append = (more: string): void => {
    whole = (whole + more).slice(-OUTPUT_LIMIT);
    words.textContent = whole.trim();
    last.textContent = whole.trimEnd().split("\n").at(-1)?.trim() ?? "";
  };
  append(text);
  return grows(box, append);
}

function planView({ word, runId }: Context): BlockView {
  const list = element("ol", "plan");
  const plan = (told: Plan): void => {
    list.hidden = told.state === "proposed"; // until it begins it stands beside its question, where it can be changed
    drawSteps(list, told, runId, word);
  };
  return { element: list, append: () => undefined, plan };
}

function grows(shown: HTMLElement, append: (text: string) => void): BlockView {
  return { element: shown, append, plan: () => undefined };
}

function fixed(shown: HTMLElement): BlockView {
  return grows(shown, () => undefined);
}

function names(files: readonly string[]): string {
  return files.map(baseName).join(", ");
}
