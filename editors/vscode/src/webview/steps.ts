/** The steps of a plan: what can be done about each, and before the start also their order and their words. */
import type { StepChange } from "../chat";
import type { Plan } from "../state";
import type { Context } from "./blocks";
import { button, element, filled, iconButton } from "./dom";

type Step = Plan["steps"][number];
type Word = Context["word"];

export const STEP_ICONS: Readonly<Record<string, string>> = {
  pending: "circle-large-outline",
  in_progress: "loading",
  running: "loading",
  completed: "pass-filled",
  failed: "error",
  skipped: "debug-step-over",
  cancelled: "circle-slash",
};

/** Draws them into a list anew; what had the focus has it again, also where it has moved, and a field keeps its text. */
export function drawSteps(list: HTMLElement, plan: Plan, runId: string, word: Word): void {
  const active = document.activeElement as HTMLElement | null;
  const key = list.contains(active) ? active?.dataset["key"] : undefined;
  const open = list.querySelector("input");
  const rows = plan.state === "proposed" ? draftRows(plan.steps, runId, word) : plan.steps.map((step) => stepRow(step, runId, word));
  list.replaceChildren(...rows);
  if (open) reopen(list, open);
  if (key) list.querySelector<HTMLElement>(`[data-key="${key}"]`)?.focus(); // a field stands before its button
  else active?.focus();
}

/** The field that was open before the list was drawn is open again, with what had been typed. */
function reopen(list: HTMLElement, before: HTMLInputElement): void {
  list.querySelector<HTMLElement>(`[data-key="${before.dataset["key"]}"]`)?.click();
  const field = list.querySelector("input");
  if (!field) return;
  field.value = before.value;
  field.setSelectionRange(before.selectionStart, before.selectionEnd);
}

/** A step with its state and what can be done about it. */
function stepRow(step: Step, runId: string, word: Word): HTMLElement {
  const row = titled(step, word, element("span", "title", step.title));
  const act = (name: string, label: string): HTMLElement =>
    button(word(label), "choice small", { step: step.stepId, run: runId, act: name });
  const acts = element("span", "acts");
  if (["failed", "pending", "skipped", "cancelled"].includes(step.state)) acts.append(act("retryStep", "doStep"));
  if (["failed", "pending"].includes(step.state)) acts.append(act("skipStep", "skipStep"));
  if (["completed", "failed"].includes(step.state)) acts.append(act("rollback", "rollback"));
  if (acts.childElementCount) row.append(acts);
  if (step.state === "failed" && step.error) row.append(element("div", "reason", step.error));
  return row;
}

/** Steps that have not begun: each can be moved, written anew and dropped, and others added. */
function draftRows(steps: readonly Step[], runId: string, word: Word): HTMLElement[] {
  const arranged = (change: StepChange, key: string): Record<string, string> => ({ arrange: JSON.stringify(change), run: runId, key });
  const rows = steps.map((step, at) => {
    const { stepId } = step;
    const title = element("span", "title", step.title);
    const edit = iconButton("edit", word("editStep", step.title), { key: `edit-${stepId}` });
    edit.addEventListener("click", () => {
      const keep = (words: string): Record<string, string> => arranged({ do: "title", stepId, title: words }, `edit-${stepId}`);
      open(title, edit, step.title, word("stepTitle"), keep);
    });
    const up = iconButton("arrow-up", word("moveUp", step.title), arranged({ do: "up", stepId }, `up-${stepId}`));
    const down = iconButton("arrow-down", word("moveDown", step.title), arranged({ do: "down", stepId }, `down-${stepId}`));
    const drop = iconButton("close", word("dropStep", step.title), arranged({ do: "drop", stepId }, `drop-${stepId}`));
    up.disabled = at === 0;
    down.disabled = at === steps.length - 1;
    drop.disabled = steps.length === 1;
    const row = titled(step, word, title);
    row.title = step.description;
    row.append(filled("span", "acts shown", up, down, edit, drop));
    return row;
  });
  const add = button(word("addStep"), "link", { key: "add" });
  add.addEventListener("click", () => {
    const keep = (words: string): Record<string, string> => arranged({ do: "add", title: words }, "add");
    open(add, add, "", word("stepTitle"), keep);
  });
  return [...rows, filled("li", "add", add)];
}

function titled(step: Step, word: Word, title: HTMLElement): HTMLElement {
  const icon = element("span", `codicon codicon-${STEP_ICONS[step.state] ?? "circle-large-outline"}`);
  icon.setAttribute("role", "img");
  icon.setAttribute("aria-label", word(`step.${step.state}`));
  return filled("li", step.state, icon, title);
}

/** Puts a field for a title in the place of `shown`: Enter keeps the words, Escape does not; then `opener` has the focus. */
function open(shown: HTMLElement, opener: HTMLElement, text: string, label: string, keep: (words: string) => Record<string, string>): void {
  const field = document.createElement("input");
  field.value = text;
  field.className = "title";
  field.setAttribute("aria-label", label);
  field.dataset["key"] = opener.dataset["key"];
  field.addEventListener("keydown", (event) => {
    const words = field.value.trim();
    if (event.isComposing || (event.key !== "Escape" && (event.key !== "Enter" || !words))) return;
    event.preventDefault();
    if (event.key === "Enter") {
      Object.assign(field.dataset, keep(words)); // told as a click is, see `main.ts`
      field.click();
    }
    field.replaceWith(shown);
    opener.focus();
  });
  shown.replaceWith(field);
  field.focus();
}
