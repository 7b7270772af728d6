/** The steps of a plan: what can be done about each, and before the start also their order and their words. */
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
  cancelled: "circle-slash",};

/** Draws them into a list anew; what had the focus has it again, also where it has moved. */
export function drawSteps(list: HTMLElement, plan: Plan, runId: string, word: Word): void {
  const focused = list.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset["key"] : undefined;
  const rows = plan.state === "proposed" ? draftRows(plan.steps, runId, word) : plan.steps.map((step) => stepRow(step, runId, word));
  list.replaceChildren(...rows);
  if (focused) list.querySelector<HTMLElement>(`[data-key="${focused}"]`)?.focus();
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
  const arranged = (wanted: readonly Partial<Step>[], key: string): Record<string, string> => ({
    arrange: JSON.stringify(wanted.map(({ stepId, title, description }) => ({ stepId, title, description }))), run: runId, key,
  });
  const rows = steps.map((step, at) => {
    const others = steps.filter((each) => each !== step);
    const moved = (to: number): Step[] => [...others.slice(0, to), step, ...others.slice(to)];
    const title = element("span", "title", step.title);
    const edit = iconButton("edit", word("editStep", step.title), { key: `edit-${step.stepId}` });
    edit.addEventListener("click", () => {
      const keep = (words: string): Record<string, string> =>
        arranged(steps.map((each) => (each === step ? { ...step, title: words } : each)), `edit-${step.stepId}`);
      title.replaceWith(input(step.title, word("stepTitle"), keep, (field) => field.replaceWith(title)));
    });
    const up = iconButton("arrow-up", word("moveUp", step.title), arranged(moved(at - 1), `up-${step.stepId}`));
    const down = iconButton("arrow-down", word("moveDown", step.title), arranged(moved(at + 1), `down-${step.stepId}`));
    const drop = iconButton("close", word("dropStep", step.title), arranged(others, `drop-${step.stepId}`));
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
    const keep = (words: string): Record<string, string> => arranged([...steps, { title: words }], "add");
    add.replaceWith(input("", word("stepTitle"), keep, (field) => field.replaceWith(add)));
  });
  return [...rows, filled("li", "add", add)];
}

function titled(step: Step, word: Word, title: HTMLElement): HTMLElement {
  const icon = element("span", `codicon codicon-${STEP_ICONS[step.state] ?? "circle-large-outline"}`);
  icon.setAttribute("role", "img");
  icon.setAttribute("aria-label", word(`step.${step.state}`));
  return filled("li", step.state, icon, title);
}

/** A field for a title: Enter keeps it, Escape and leaving it do not. */
function input(text: string, label: string, keep: (words: string) => Record<string, string>, leave: (field: HTMLElement) => void): HTMLElement {
  const field = document.createElement("input");
  field.value = text;
  field.className = "title";
  field.setAttribute("aria-label", label);
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") leave(field);
    if (event.key !== "Enter" || !field.value.trim()) return;
    event.preventDefault();
    Object.assign(field.dataset, keep(field.value.trim())); // told as a click is, see `main.ts`
    field.click();
  });
  setTimeout(() => field.focus());
  return field;
}
