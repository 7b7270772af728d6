/**
 * The input: grows, keeps its draft, completes `@`, `#` and `/`, remembers what was sent, shows what goes along.
 * Not here: sending (`main.ts` says it to the host).
 */
import type { Completion, Controls, Place } from "../chat";
import { Ring } from "./cost";
import { button, codicon, element, filled, iconButton } from "./dom";
import { givenBack } from "./draft";
import { Pictures } from "./pictures";

export interface ComposerHost {
  word(key: string, ...values: readonly unknown[]): string;
  say(message: object): void;
  /** The user's earlier words, oldest first. */
  earlier(): readonly string[];
  keep(draft: string): void;
  /** Words are on their way. */
  sent(): void;
}

const MOST_ROWS = 12;
const ASKS = /(?:^|\s)[@#/][^\s]*$|@"[^"\n]*$/;

export class Composer {
  readonly form = document.getElementById("composer") as HTMLFormElement;
  private readonly input = document.createElement("textarea");
  private readonly send: HTMLButtonElement;
  private readonly chips = element("div", "chips");
  private readonly list = element("ul", "completions");
  private readonly model = button("", "pick", { command: "codeagent.model.list" });
  private readonly mode = button("", "pick", { command: "codeagent.mode.set" });
  private readonly effort = button("", "pick", { command: "codeagent.effort" });
  private readonly editing = element("div", "editing");
  readonly ring: Ring;
  readonly pictures: Pictures;
  private place: Place | undefined;
  private left = false;
  private busy = "";
  private asked = 0;
  private items: readonly Completion[] = [];
  private at = 0;
  private back = 0;
  private draft = "";
  /** The run whose words are being changed: it is gone back to before them when they are sent. */
  private again = "";

  constructor(private readonly host: ComposerHost, draft: string) {
    this.ring = new Ring(host.word);
    this.pictures = new Pictures({ word: host.word, changed: (pictures) => this.host.say({ type: "attached", pictures }), drawn: () => this.drawSend() });
    this.send = iconButton("send", host.word("send"));
    this.build(draft);
  }

  /** The current file and selection go along, unless the user has taken them off. */
  offer(place: Place | undefined): void {
    if (place?.uri !== this.place?.uri) this.left = false;
    this.place = place;
    this.drawChips();
  }

  controls({ model, mode, effort }: Controls): void {
    const { word } = this.host;
    const show = (target: HTMLElement, icon: string, text: string, label: string): void => {
      target.replaceChildren(codicon(icon), element("span", "", text));
      target.title = label;
      target.setAttribute("aria-label", `${label}: ${text}`);
    };
    show(this.model, "server", model || word("model"), word("chooseModel"));
    show(this.mode, "shield", word(`mode.${mode}`), word("chooseMode"));
    show(this.effort, "lightbulb", word(`effort.${effort}`), word("chooseEffort"));
  }

  /** A run is at work (its id), or none: what Enter does, and what the button is. */
  work(run: string): void {
    this.busy = run;
    this.drawSend();
    const { word } = this.host;
    this.input.placeholder = word(run ? "placeholderBusy" : "placeholder");
    this.input.setAttribute("aria-label", this.input.placeholder);
  }

  /** What could not be sent is in the input again. */
  unsent(text: string): void {
    this.set(givenBack(text, this.input.value));
  }

  /** The user changes words of before. */
  edit(runId: string, text: string): void {
    const { word } = this.host;
    this.again = runId;
    const cancel = iconButton("close", word("cancel"));
    cancel.addEventListener("click", () => this.stopEditing());
    this.editing.replaceChildren(codicon("edit"), element("span", "", word("editing")), cancel);
    this.editing.hidden = false;
    this.set(text);
    this.input.focus();
  }

  complete(id: number, items: readonly Completion[]): void {
    if (id !== this.asked) return;
    this.items = items.slice(0, 12);
    this.at = 0;
    this.drawList();
  }

  add(words: string): void {
    this.set(`${this.input.value}${this.input.value && !this.input.value.endsWith(" ") ? " " : ""}${words} `);
    this.input.focus();
  }

  focus(): void {
    this.input.focus();
  }

  private build(draft: string): void {
    const { word } = this.host;
    this.list.id = "completions";
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", word("completions"));
    this.list.hidden = this.editing.hidden = true;
    this.input.rows = 1;
    this.input.value = draft;
    for (const [name, value] of Object.entries({ "aria-controls": "completions", "aria-autocomplete": "list" })) this.input.setAttribute(name, value);
    this.input.addEventListener("input", () => this.changed());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("paste", (event) => this.pictures.paste(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.send.classList.add("send");
    this.send.addEventListener("click", () => this.press());
    const at = iconButton("mention", word("addContext"));
    at.addEventListener("click", () => {
      this.add("@");
      this.set(this.input.value.trimEnd());
      this.changed();
    });
    const row = filled("div", "controls", at, this.model, this.mode, this.effort, element("span", "gap"), this.ring.element, this.send);
    this.form.append(this.editing, this.list, this.ring.panel, filled("div", "box", this.chips, this.pictures.element, this.input, row));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.form.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.form.classList.add("dropping");
    });
    for (const name of ["dragleave", "drop"]) this.form.addEventListener(name, () => this.form.classList.remove("dropping"));
    this.form.addEventListener("drop", (event) => this.dropped(event));
    this.work("");
    this.grow();
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (!this.list.hidden && this.inList(event.key)) return event.preventDefault();
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit(event.altKey);
    } else if (event.key === "Escape" && this.again) {
      this.stopEditing();
    } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && this.leaf(event.key === "ArrowUp" ? 1 : -1)) {
      event.preventDefault();
    }
  }

  /** A key that the open list takes. */
  private inList(key: string): boolean {
    const count = this.items.length;
    if (key === "ArrowDown" || key === "ArrowUp") this.at = (this.at + (key === "ArrowDown" ? 1 : count - 1)) % count;
    else if (key === "Enter" || key === "Tab") return this.take(this.at), true;
    else if (key === "Escape") return this.close(), true;
    else return false;
    this.drawList();
    return true;
  }

  /** Goes to earlier words where the cursor cannot go further up, and back; false where that key moves the cursor. */
  private leaf(by: 1 | -1): boolean {
    const { selectionStart: at, value } = this.input;
    const atEdge = by > 0 ? !value.slice(0, at).includes("\n") : this.back > 0 && !value.slice(at).includes("\n");
    const earlier = this.host.earlier();
    const next = this.back + by;
    if (!atEdge || next < 0 || next > earlier.length) return false;
    if (this.back === 0) this.draft = value;
    this.back = next;
    const kept = next;
    this.set(next === 0 ? this.draft : (earlier.at(-next) ?? ""));
    this.back = kept;
    return true;
  }

  private press(): void {
    if (this.busy && !this.input.value.trim()) this.host.say({ type: "stop" });
    else this.submit(false);
  }

  private submit(later: boolean): void {
    const text = this.input.value.trim();
    if (!text) return;
    const how = this.busy && !this.again ? (later || this.pictures.any ? "queue" : "steer") : "run";
    const place = this.left || how === "steer" ? undefined : this.place;
    this.host.say({ type: "send", text, how, place, again: this.again });
    this.set("");
    this.stopEditing();
    this.host.sent();
  }

  private stopEditing(): void {
    if (this.again) this.set("");
    this.again = "";
    this.editing.hidden = true;
  }

  private changed(): void {
    this.back = 0;
    this.grow();
    const before = this.input.value.slice(0, this.input.selectionStart);
    if (!ASKS.test(before)) return this.close();
    this.asked += 1;
    this.host.say({ type: "complete", id: this.asked, text: before });
  }

  private take(index: number): void {
    const item = this.items[index];
    const end = this.input.selectionStart;
    if (item) {
      const start = [...this.input.value].slice(0, item.start).join("").length;
      const words = item.words.endsWith(" ") ? item.words : `${item.words} `;
      this.input.setRangeText(words, start, end, "end");
    }
    this.close();
    this.grow();
  }

  private close(): void {
    this.asked += 1;
    this.items = [];
    this.drawList();
  }

  private drawList(): void {
    this.list.hidden = this.items.length === 0;
    this.list.replaceChildren(...this.items.map((item, index) => {
      const row = filled("li", "", element("span", "label", item.label), element("span", "detail", item.detail));
      row.id = `completion${index}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", String(index === this.at));
      row.addEventListener("mousedown", (event) => {
        event.preventDefault();
        this.take(index);
      });
      return row;
    }));
    if (this.list.hidden) this.input.removeAttribute("aria-activedescendant");
    else this.input.setAttribute("aria-activedescendant", `completion${this.at}`);
    this.list.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }

  private drawChips(): void {
    const { word } = this.host;
    this.chips.replaceChildren();
    this.chips.hidden = !this.place;
    if (!this.place) return;
    const { range, label } = this.place;
    const first = (range?.start.line ?? 0) + 1;
    const last = Math.max(first, (range?.end.line ?? 0) + (range?.end.character === 0 ? 0 : 1));
    const lines = range ? `:${first === last ? first : `${first}-${last}`}` : "";
    const chip = button("", `chip${this.left ? " off" : ""}`);
    chip.append(codicon(range ? "list-selection" : "file"), element("span", "", `${label}${lines}`));
    chip.setAttribute("aria-pressed", String(!this.left));
    chip.title = word(this.left ? "chipOff" : "chipOn");
    chip.addEventListener("click", () => {
      this.left = !this.left;
      this.drawChips();
    });
    this.chips.append(chip);
  }

  private drawSend(): void {
    const stops = this.busy !== "" && !this.input.value.trim();
    const label = this.host.word(stops ? "stop" : !this.busy ? "send" : this.pictures.any ? "sendNext" : "steer");
    this.send.dataset["busy"] = String(stops);
    this.send.replaceChildren(codicon(stops ? "debug-stop" : "send"), element("span", "hidden", label));
    this.send.title = label;
  }

  /** Pictures that are dropped go along, other files of the editor are mentioned by their names. */
  private dropped(event: DragEvent): void {
    if (this.pictures.drop(event)) return;
    const found = event.dataTransfer?.getData("application/vnd.code.uri-list") || event.dataTransfer?.getData("text/uri-list");
    if (!found) return;
    event.preventDefault();
    this.host.say({ type: "mention", uris: found.split(/\r?\n/).filter(Boolean) });
  }

  private set(text: string): void {
    this.input.value = text;
    this.back = 0;
    this.grow();
  }

  private grow(): void {
    this.input.style.height = "auto";
    const most = MOST_ROWS * 20;
    this.input.style.height = `${Math.min(most, this.input.scrollHeight + 2)}px`;
    this.host.keep(this.input.value);
    this.drawSend();
  }
}
