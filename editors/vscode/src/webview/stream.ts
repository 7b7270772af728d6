/**
 * A growing Markdown text on the page: what is settled is rendered once and stays, only the tail is drawn again,
 * at most once a frame.
 */
import { settled } from "./stable";

export class Stream {
  readonly element = document.createElement("div");
  private readonly tail = document.createElement("div");
  private text = "";
  private done = 0;
  private waiting = false;

  constructor(private readonly render: (text: string) => string) {
    this.element.className = "markdown";
    this.element.append(this.tail);
  }

  set(text: string): void {
    this.element.replaceChildren(this.tail);
    this.text = "";
    this.done = 0;
    this.append(text);
  }

  append(text: string): void {
    this.text += text;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.waiting = false;
    const end = settled(this.text, this.done);
    if (end > this.done) {
      const piece = document.createElement("div");
      piece.className = "piece";
      piece.innerHTML = this.render(this.text.slice(this.done, end));
      this.tail.before(piece);
      this.done = end;
    }
    this.tail.innerHTML = this.render(this.text.slice(this.done));
  }
}
