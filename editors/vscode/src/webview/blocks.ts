/** One element for each kind of block. */
import type { Block, Plan } from "../state";
import { button, element, fileButton } from "./dom";
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
const FILE_TOOLS = new Set(["read_file", "write_file", "edit_file", "apply_patch"]);
const STEP_MARKS: Record<string, string> = {
  pending: "○",
  running: "◐",
  completed: "●",
  failed: "✕",
  skipped: "–",
  cancelled: "–",
};

export function makeBlock(block: Block, context: Context): BlockView {
  switch (block.kind) {
    case "text": {
      const stream = new Stream((text) => context.render(text));
      stream.append(block.text);
      return grows(stream.element, (text) => stream.append(text));
    }
    case "output":
      return output(block.text);
    case "plan":
      return planView();
    default:
      return fixed(still(block, context));
  }
}

function still(block: Exclude<Block, { kind: "text" | "output" | "plan" }>, context: Context): HTMLElement {
  const { word } = context;
  switch (block.kind) {
    case "tool":
      return tool(block);
    case "note":
      return element("p", "note", block.text);
    case "said":
      return element("blockquote", "said", block.text);
    case "error":
      return element("p", "problem", block.text);
    case "command":
      return element("code", "command", `$ ${block.text}`);
    case "compacted":
      return element("p", "note", word("compacted", block.before, block.after));
    case "step":
      return element("h3", "step", block.text);
    case "exit":
      return element("p", "note", word("exit", block.exitCode, block.duration.toFixed(1)));
    case "question":
      return question(block, context);
    case "changes":
      return changes(block, context);
    case "applied":
      return applied(block, context);
    case "discarded":
      return element("p", "decision", word("discarded", names(block.files)));
    case "ended":
      return ending(block, context);
  }
}

function tool(block: Extract<Block, { kind: "tool" }>): HTMLElement {
  const row = element("div", `tool ${block.state}`);
  row.append(element("span", "mark"), element("span", "name", block.name));
  if (block.subject) {
    const isFile = FILE_TOOLS.has(block.name);
    row.append(isFile ? fileButton(block.subject, block.subject) : element("span", "subject", block.subject));
  }
  if (block.state === "running" && block.output) row.append(element("span", "live", block.output));
  if (block.error) row.append(element("div", "reason", block.error));
  return row;
}

function question(block: Extract<Block, { kind: "question" }>, { word }: Context): HTMLElement {
  const box = element("div", `question ${block.open ? "open" : "over"}`);
  box.append(element("p", "asks", block.title));
  if (!block.open) {
    box.append(element("p", "answer", block.answer === undefined ? word("unanswered") : word("answered", block.answer)));
    return box;
  }
  const row = element("div", "row");
  // Free text and consent to details belong to the editor's own prompt; the choices are here as well.
  for (const choice of block.choices) row.append(button(choice, "choice", { answer: choice, request: block.requestId }));
  if (block.choices.length === 0) row.append(button(word("answer"), "choice", { say: "question", request: block.requestId }));
  box.append(row);
  return box;
}

function changes(block: Extract<Block, { kind: "changes" }>, { word, runId }: Context): HTMLElement {
  const box = element("div", "changes");
  const head = element("div", "row");
  const words = word(block.files.length === 1 ? "proposedOne" : "proposed", block.files.length, block.added, block.removed);
  head.append(element("span", "summary", words), button(word("review"), "choice", { say: "review", run: runId }));
  const list = element("ul", "files");
  for (const file of block.files.slice(0, 50)) {
    const item = document.createElement("li");
    item.append(fileButton(file, name(file)));
    list.append(item);
  }
  box.append(head, ...(block.proof ?? []).map((line) => element("div", "proof", line)), list);
  return box;
}

function applied(block: Extract<Block, { kind: "applied" }>, { word, runId }: Context): HTMLElement {
  const row = element("div", `decision row ${block.outcome}`);
  const key = block.outcome === "none" || block.outcome === "unknown" ? "notApplied" : block.undo ? "undone" : block.outcome === "partial" ? "partly" : "applied";
  const about = block.conflicts.length > 0 ? block.conflicts : block.files.map(name);
  row.append(element("span", "summary", word(key, block.reason ?? about.join(", "))));
  if (key === "applied" || key === "partly") row.append(button(word("undo"), "choice", { say: "undo", run: runId }));
  return row;
}

function ending(block: Extract<Block, { kind: "ended" }>, { word, render }: Context): HTMLElement {
  const box = element("div", `ended ${block.status}`);
  if (block.error) box.append(element("p", "problem", block.error));
  else if (block.summary) {
    const summary = element("div", "markdown");
    summary.innerHTML = render(block.summary);
    box.append(summary);
  }
  box.append(element("p", "status", word(block.status)));
  return box;
}

function output(text: string): BlockView {
  const shown = element("pre", "output");
  let whole = "";
  const append = (more: string): void => {
    whole = (whole + more).slice(-OUTPUT_LIMIT);
    shown.textContent = whole;
  };
  append(text);
  return grows(shown, append);
}

function planView(): BlockView {
  const list = element("ol", "plan");
  const draw = (plan: Plan): void => {
    const rows = plan.steps.map((step) => {
      const row = element("li", step.state, `${STEP_MARKS[step.state] ?? "○"} ${step.title}`);
      if (step.state === "failed" && step.error) row.append(element("div", "reason", step.error));
      return row;
    });
    list.replaceChildren(...rows);
  };
  return { element: list, append: () => undefined, plan: draw };
}

function grows(shown: HTMLElement, append: (text: string) => void): BlockView {
  return { element: shown, append, plan: () => undefined };
}

function fixed(shown: HTMLElement): BlockView {
  return grows(shown, () => undefined);
}

function names(files: readonly string[]): string {
  return files.map(name).join(", ");
}

function name(file: string): string {
  return file.split(/[\\/]/).at(-1) ?? file;
}
