/**
 * A growing Markdown text on the page: what is settled is rendered once and stays, only the tail is drawn again.
 * A frame renders for a few milliseconds at most, and a tail that takes long is drawn less often.
 * What is settled lies in small pieces, many of them in a page: the browser lays out only what is in sight.
 */
import { settled } from "./stable";

const BUDGET_MS = 6;
/** A tail is drawn for at most one part in so many of the time. */
const SHARE = 8;
const PAGE = 60_000;
/** About what a character takes of a panel's height, until a piece was shown once. */
const PX_PER_CHARACTER = 0.45;

export class Stream {
  readonly element = document.createElement("div");
  private readonly tail = document.createElement("div");
  private page: HTMLElement = this.tail;
  private pageStart = -PAGE;
  private text = "";
  private done = 0;
  private shown = 0;
  private waiting = false;

  constructor(private readonly render: (text: string) => string) {
    this.element.className = "markdown";
    this.element.append(this.tail);
  }

  append(text: string): void {
    this.text += text;
    if (!this.waiting) this.later(0);
  }

  private later(ms: number): void {
    this.waiting = true;
    setTimeout(() => requestAnimationFrame(() => this.draw()), ms);
  }

  private draw(): void {
    this.waiting = false;
    if (this.shown === this.text.length) return;
    const began = performance.now();
    for (const end of settled(this.text, this.done)) {
      this.settle(end);
      if (performance.now() - began < BUDGET_MS) continue;
      this.tail.replaceChildren(); // it began with what is settled now
      return this.later(0);
    }
    const before = performance.now();
    this.tail.innerHTML = this.render(this.text.slice(this.done));
    this.shown = this.text.length;
    const cost = performance.now() - before;
    if (cost > BUDGET_MS) this.later(cost * SHARE);
  }

  private settle(end: number): void {
    const piece = box("piece");
    piece.innerHTML = this.render(this.text.slice(this.done, end));
    if (this.done - this.pageStart >= PAGE) this.turn();
    this.page.append(piece);
    estimate(piece, end - this.done);
    estimate(this.page, end - this.pageStart);
    this.done = end;
  }

  private turn(): void {
    this.page = box("page");
    this.pageStart = this.done;
    this.tail.before(this.page);
  }
}

/** An element that is laid out only near the window. */
function box(className: string): HTMLElement {
  const made = document.createElement("div");
  made.className = className;
  return made;
}

/** An element that was not laid out yet is as high as so many characters. */
function estimate(element: HTMLElement, characters: number): void {
  element.style.containIntrinsicHeight = `auto ${Math.max(24, Math.round(characters * PX_PER_CHARACTER))}px`;
}
