/**
 * Above the input: the questions that are open, the plan and the todo list of the run at work, its changes that wait,
 * what is queued.
 */
import type { Plan, Todo } from "../state";
import type { Asked, Bar, Patch } from "../transcript";
import { baseName, button, element, filled, iconButton } from "./dom";
import { makeQuestion } from "./questions";
import { drawSteps, STEP_ICONS } from "./steps";

type Word = (key: string, ...values: readonly unknown[]) => string;

/** Rows that are drawn; a list of more is cut, the review has all. */
const MOST = 100;
/** So few are listed without being asked for. */
const FEW = 3;

export class Shelf {
  readonly element = element("div", "");
  private readonly pinned = document.createElement("details");
  private readonly changes = document.createElement("details");
  private readonly queue = element("ul", "queue");
  private readonly aside = element("div", "aside");
  private bar: Bar = { run: "", files: [], proof: [] };
  private root = "";
  private drafted = false;
  private plan: Plan | undefined;
  private readonly rows = element("ol", "plan");

  constructor(private readonly word: Word) {
    this.element.id = "shelf";
    this.pinned.className = "pinned";
    this.pinned.append(element("summary", ""), this.rows);
    this.changes.className = "changesbar";
    this.aside.setAttribute("aria-live", "polite"); // who reads by ear hears what is asked
    this.pinned.hidden = this.changes.hidden = this.queue.hidden = this.aside.hidden = true;
    this.element.append(this.aside, this.queue, this.pinned, this.changes);
  }

  apply(patch: Patch): void {
    if (patch.type === "bar") this.drawChanges(patch);
    if (patch.type === "queue") this.drawQueue(patch.items);
    if (patch.type === "aside") this.drawAside(patch.questions);
  }

  /** The folder below which files are named. */
  below(root: string): void {
    this.root = root;
    this.drawChanges(this.bar);
  }

  /** The plan or the todo list of a run, while it is at work. */
  pin(runId: string, plan: Plan | undefined, todos: readonly Todo[], working: boolean): void {
    const [done, all] = plan
      ? [plan.steps.filter((step) => step.state === "completed").length, plan.steps.length]
      : [todos.filter((todo) => todo.status === "completed").length, todos.length];
    this.pinned.hidden = all === 0 || !working;
    const drafted = plan?.state === "proposed" && working;
    if (drafted !== this.drafted) this.pinned.open = drafted; // once, so that it stays as the user wants it
    this.drafted = drafted;
    if (this.pinned.hidden) return;
    const current = plan?.steps.find((step) => step.state === "running")?.title ?? todos.find((todo) => todo.status === "in_progress")?.content ?? "";
    const head = filled(
      "summary", "", element("span", "label", this.word(plan ? "planCount" : "todoCount", done, all)), element("span", "current", current),
    );
    this.pinned.querySelector("summary")?.replaceWith(head);
    if (!plan) this.rows.replaceChildren(...todos.map((todo) => this.todo(todo)));
    else if (plan !== this.plan) drawSteps(this.rows, plan, runId, this.word);
    this.plan = plan;
  }

  private todo({ content, status }: Todo): HTMLElement {
    const icon = element("span", `codicon codicon-${STEP_ICONS[status] ?? "circle-large-outline"}`);
    icon.setAttribute("role", "img");
    icon.setAttribute("aria-label", this.word(`step.${status}`));
    return filled("li", status === "in_progress" ? "running" : status, icon, element("span", "title", content));
  }

  private drawChanges(bar: Bar): void {
    const { word } = this;
    this.bar = bar;
    const { run, files, foreign } = bar;
    this.changes.hidden = files.length === 0;
    this.element.querySelector(".barActs")?.remove();
    if (files.length === 0) return;
    const sum = (key: "added" | "removed"): number => files.reduce((so_far, file) => so_far + file[key], 0);
    const count = filled(
      "span", "label", word(files.length === 1 ? "oneFile" : "files", files.length), " ",
      element("span", "added", `+${sum("added")}`), " ", element("span", "removed", `−${sum("removed")}`),
    );
    const proof = element("span", `proof ${bar.proven === true ? "green" : bar.proven === false ? "red" : ""}`);
    const [first] = bar.proof;
    if (first) {
      proof.append(element("span", `codicon codicon-${bar.proven === true ? "pass" : bar.proven === false ? "error" : "info"}`), element("span", "", first));
      proof.title = bar.proof.join("\n");
    }
    const acts = filled(
      "span", "acts", button(word("review"), "choice primary", { say: "review", run }), button(word(foreign ? "keep" : "apply"), "choice", { say: "applyAll", run }),
      button(word(foreign ? "revert" : "discard"), "choice", { say: "discardAll", run }),
    );
    // Buttons in a summary would fold it: they stand beside it.
    const summary = filled("summary", "", count, proof);
    const list = element("ul", "rows");
    for (const file of files.slice(0, MOST)) list.append(this.row(bar, file));
    if (files.length > MOST) list.append(element("li", "note", word("moreFiles", files.length - MOST)));
    const open = this.changes.dataset["run"] === run ? this.changes.open : files.length <= FEW;
    this.changes.dataset["run"] = run;
    this.changes.replaceChildren(summary, list);
    this.changes.open = open;
    this.changes.after(filled("div", "barActs", acts));
  }

  private row({ run, foreign }: Bar, file: Bar["files"][number]): HTMLElement {
    const { word } = this;
    const shown = this.root && file.path.startsWith(this.root) ? file.path.slice(this.root.length + 1) : file.path;
    const name = button(baseName(shown), "file", { change: file.path, run, act: "open" });
    name.title = shown;
    const folder = shown.slice(0, Math.max(0, shown.length - baseName(shown).length - 1));
    return filled(
      "li", "changed", name, element("span", "folder", folder), file.state === "changed" ? undefined : element("span", "kind", word(`file.${file.state}`)),
      filled("span", "counts", element("span", "added", `+${file.added}`), " ", element("span", "removed", `−${file.removed}`)),
      iconButton("check", word(foreign ? "keepFile" : "acceptFile", baseName(shown)), { change: file.path, run, act: "apply" }),
      iconButton("close", word(foreign ? "revertFile" : "discardFile", baseName(shown)), { change: file.path, run, act: "discard" }),
    );
  }

  private drawAside(questions: readonly Asked[]): void {
    this.aside.hidden = questions.length === 0;
    // Those that stay are not drawn again: there may be words in their fields.
    const known = new Map([...this.aside.children].map((box) => [(box as HTMLElement).dataset["asked"], box]));
    this.aside.replaceChildren(...questions.map((asked) => known.get(asked.requestId) ?? makeQuestion(asked, { word: this.word })));
  }

  private drawQueue(items: readonly { readonly run: string; readonly title: string }[]): void {
    this.queue.hidden = items.length === 0;
    this.queue.replaceChildren(...items.map(({ run, title }) =>
      filled("li", "", element("span", "label", this.word("queued")), element("span", "title", title), iconButton("close", this.word("leaveOut"), { say: "withdraw", run })),
    ));
  }
}
