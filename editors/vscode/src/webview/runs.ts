/** The conversation: each run with the user's words, what the agent did and said, and what it cost. */
import type { Block, Plan } from "../state";
import type { Patch, RunHead } from "../transcript";
import { type BlockView, makeBlock } from "./blocks";
import { costLine } from "./cost";
import { button, codicon, element, filled, iconButton } from "./dom";
import { picture, urlOf } from "./pictures";
import { STEP_ICONS } from "./steps";

interface RunView {
  readonly section: HTMLElement;
  readonly prompt: HTMLElement;
  readonly pictures: HTMLElement;
  readonly body: HTMLElement;
  readonly foot: HTMLElement;
  readonly attempts: HTMLElement;
  readonly activity: HTMLElement;
  readonly cost: HTMLElement;
  readonly blocks: BlockView[];
  head: RunHead | undefined;
  plan: Plan | undefined;
}

export interface Surroundings {
  readonly log: HTMLElement;
  readonly empty: HTMLElement;
  word(key: string, ...values: readonly unknown[]): string;
  render(text: string): string;
  /** The user wants to change these words and send them again, from before their run. */
  editAgain(runId: string, text: string): void;
  /** A run has come, for what follows its size. */
  added(section: HTMLElement): void;
}

export class Runs {
  private readonly views = new Map<string, RunView>();

  constructor(private readonly around: Surroundings) {
    setInterval(() => this.tick(), 1000);
  }

  /** Draws what a patch tells of runs; false for other patches. */
  apply(patch: Patch): boolean {
    switch (patch.type) {
      case "reset":
        for (const { pictures } of this.views.values()) forget(pictures);
        this.views.clear();
        this.around.log.replaceChildren(this.around.empty);
        return true;
      case "run":
        this.head(patch);
        return true;
      case "sent": {
        const view = this.view(patch.run);
        forget(view.pictures);
        view.pictures.replaceChildren(...patch.pictures.map(({ name, data }) => filled("li", "thumb", picture(name, urlOf(data)))));
        return true;
      }
      case "block":
        this.put(patch.run, patch.index, patch.block);
        return true;
      case "cut":
        for (const gone of this.view(patch.run).blocks.splice(patch.length)) gone.element.remove();
        return true;
      case "append":
        this.view(patch.run).blocks[patch.index]?.append(patch.text);
        return true;
      case "plan": {
        const view = this.view(patch.run);
        view.plan = patch.plan;
        for (const block of view.blocks) block.plan(patch.plan);
        return true;
      }
    }
    return false;
  }

  /** The newest run, and its plan. */
  newest(): { head: RunHead | undefined; plan: Plan | undefined } {
    const last = [...this.views.values()].at(-1);
    return { head: last?.head, plan: last?.plan };
  }

  /** What the user has asked for, oldest first. */
  prompts(): string[] {
    return [...this.views.values()].flatMap(({ head }) => (head?.task ? [head.task] : []));
  }

  private view(id: string): RunView {
    const known = this.views.get(id);
    if (known) return known;
    const prompt = element("div", "prompt");
    const pictures = element("ul", "thumbs sent");
    pictures.setAttribute("aria-label", this.around.word("pictures"));
    const body = element("div", "body");
    const activity = element("span", "state");
    const cost = element("span", "cost");
    const foot = filled("footer", "foot", activity, cost);
    const attempts = element("div", "attempts");
    const section = filled("section", "run", prompt, pictures, body, attempts, foot);
    this.around.empty.remove();
    this.around.log.append(section);
    this.around.added(section);
    const made: RunView = { section, prompt, pictures, body, foot, attempts, activity, cost, blocks: [], head: undefined, plan: undefined };
    this.views.set(id, made);
    return made;
  }

  private head(head: RunHead): void {
    const { word } = this.around;
    const view = this.view(head.run);
    const before = view.head;
    view.head = head;
    view.section.dataset["status"] = head.status;
    view.section.classList.toggle("rewound", head.rewound !== undefined);
    const busy = head.status === "running";
    if (!before || before.task !== head.task || before.attempt !== head.attempt || before.rewound !== head.rewound || (before.status === "running") !== busy) {
      this.prompt(view, head);
    }
    view.activity.textContent = !busy ? "" : head.waits ? word("waiting") : head.activity || word("working");
    this.cost(view);
    view.attempts.replaceChildren(...head.attempts.map(({ run, number, status }) => {
      const shown = button(word("attempt", number), "choice small", { say: "show", run });
      shown.prepend(codicon(STEP_ICONS[status] ?? "circle-large-outline"));
      return shown;
    }));
    if (head.attempts.length > 0) view.attempts.prepend(button(word("wholeRun"), "choice small whole", { say: "show", run: head.run }));
    undoables(view.section, head);
  }

  private prompt(view: RunView, head: RunHead): void {
    const { word } = this.around;
    const text = head.attempt ? word("attempt", head.attempt) : head.task;
    view.prompt.hidden = !text;
    const words = element("div", "words clamped", text);
    const parts: HTMLElement[] = [words];
    const lines = text.split("\n").length;
    if (lines > 3 || text.length > 240) {
      const more = button(word("showMore"), "more");
      more.setAttribute("aria-expanded", "false");
      more.addEventListener("click", () => {
        const open = words.classList.toggle("clamped");
        more.textContent = word(open ? "showMore" : "showLess");
        more.setAttribute("aria-expanded", String(!open));
      });
      parts.push(more);
    }
    if (head.rewound) parts.push(element("span", "when", word(`rewound.${head.rewound}`)));
    if (head.own && head.status !== "running" && !head.attempt && !head.rewound) {
      const again = iconButton("edit", word("editAgain"));
      again.addEventListener("click", () => this.around.editAgain(head.run, text));
      const acts = filled(
        "div", "acts", again, iconButton("discard", word("restoreHere"), { say: "rewind", run: head.run }),
        iconButton("repo-forked", word("forkHere"), { say: "fork", run: head.run }),
      );
      parts.push(acts);
    }
    view.prompt.replaceChildren(...parts);
  }

  private put(id: string, index: number, block: Block): void {
    const view = this.view(id);
    const old = view.blocks[index];
    const made = makeBlock(block, { word: this.around.word, render: this.around.render, runId: id }, old?.element);
    if (view.plan) made.plan(view.plan);
    if (old) old.element.replaceWith(made.element);
    else view.body.append(made.element);
    view.blocks[index] = made;
    if (block.kind === "applied" && view.head) undoables(made.element, view.head);
  }

  private cost(view: RunView): void {
    if (view.head) view.cost.textContent = costLine(view.head, Date.now() / 1000, this.around.word);
  }

  private tick(): void {
    for (const view of this.views.values()) if (view.head?.status === "running") this.cost(view);
  }
}

/** Lets go of the pictures that are shown. */
function forget(shown: HTMLElement): void {
  for (const image of shown.querySelectorAll("img")) URL.revokeObjectURL(image.src);
}

/** What is undone, or never came, has nothing to undo: its buttons say so. */
function undoables(inside: HTMLElement, { applied, inFiles }: RunHead): void {
  for (const undo of inside.querySelectorAll<HTMLButtonElement>(".undo")) undo.disabled = !applied;
  for (const undo of inside.querySelectorAll<HTMLButtonElement>(".undoFile")) undo.disabled = !inFiles.includes(undo.dataset["undo"] ?? "");
}
