/**
 * The pictures that go along with a task: pasted or dropped, as small pictures with a button that takes each off.
 * Not here: keeping and sending them (`views/chatActions.ts`), what the model makes of them.
 */
import type { Picture } from "../chat";
import { element, filled, iconButton } from "./dom";

/** What the server takes: see `codeagent.run` in the protocol. */
const KINDS = ["image/png", "image/jpeg", "image/webp"];
const MOST = 8;
const MOST_BYTES = 4 * 1024 * 1024;

export interface PicturesHost {
  word(key: string, ...values: readonly unknown[]): string;
  /** The user has added or removed some. */
  changed(pictures: readonly Picture[]): void;
  drawn(): void;
}

export class Pictures {
  readonly element = element("div", "pictures");
  private readonly list = element("ul", "thumbs");
  private readonly refused = element("p", "note");
  private pictures: readonly Picture[] = [];
  private told = false;
  private readonly urls = new Map<string, string>();

  constructor(private readonly host: PicturesHost) {
    this.list.setAttribute("aria-label", host.word("pictures"));
    this.refused.setAttribute("role", "status");
    this.list.hidden = true;
    this.element.append(this.list, this.refused);
  }

  get any(): boolean {
    return this.pictures.length > 0;
  }

  /** Those that go along now, as the host has them. What came before it first said so goes along too. */
  show(pictures: readonly Picture[]): void {
    const early = this.told ? [] : this.pictures;
    this.told = true;
    this.keep(pictures, early, early.length > 0 && this.refused.textContent ? [this.refused.textContent] : []);
  }

  /** Pictures in the clipboard; text beside them is pasted as always. */
  paste(event: ClipboardEvent): void {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0 || event.clipboardData?.types.includes("text/plain")) return;
    event.preventDefault();
    void this.add(files);
  }

  /** Files that are dropped from outside the editor; false where there are none. */
  drop(event: DragEvent): boolean {
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length === 0) return false;
    event.preventDefault();
    void this.add(files);
    return true;
  }

  /** Adds those that the server takes, and says which it does not. */
  private async add(files: readonly File[]): Promise<void> {
    const { word } = this.host;
    const problems: string[] = [];
    const fine = files.filter((file) => {
      const problem = !KINDS.includes(file.type) ? "noPicture" : file.size > MOST_BYTES ? "largePicture" : "";
      if (problem) problems.push(word(problem, file.name || word("picture")));
      return !problem;
    });
    const read = await Promise.all(fine.map(async (file) => ({ name: file.name || word("picture"), data: await base64(file) })));
    this.keep(this.pictures, read, problems);
  }

  /** Those of before and others, as many as the server takes; `problems` and what is too much are told. */
  private keep(before: readonly Picture[], more: readonly Picture[], problems: readonly string[]): void {
    const { word, changed } = this.host;
    const fresh = more.filter(({ data }) => !before.some((known) => known.data === data));
    const all = [...before, ...fresh];
    this.pictures = all.slice(0, MOST);
    this.draw();
    this.refused.textContent = [...new Set([...problems, ...(all.length > MOST ? [word("manyPictures", MOST)] : [])])].join(" ");
    if (fresh.length > 0) changed(this.pictures);
  }

  private draw(): void {
    const { word } = this.host;
    this.list.replaceChildren(...this.pictures.map((one, index) => {
      const off = iconButton("close", word("removePicture", one.name));
      off.addEventListener("click", () => this.remove(index));
      return filled("li", "thumb", picture(one.name, this.url(one.data)), off);
    }));
    for (const [data, url] of this.urls) {
      if (this.pictures.some((picture) => picture.data === data)) continue;
      URL.revokeObjectURL(url);
      this.urls.delete(data);
    }
    this.list.hidden = !this.any;
    this.host.drawn();
  }

  private remove(index: number): void {
    this.pictures = this.pictures.filter((_, at) => at !== index);
    this.refused.textContent = "";
    this.draw();
    this.host.changed(this.pictures);
    this.list.querySelectorAll("button")[Math.min(index, this.pictures.length - 1)]?.focus();
  }

  private url(data: string): string {
    const known = this.urls.get(data) ?? urlOf(data);
    this.urls.set(data, known);
    return known;
  }
}

/** An address for bytes in base64, until it is revoked. */
export function urlOf(data: string): string {
  return URL.createObjectURL(new Blob([Uint8Array.from(atob(data), (char) => char.charCodeAt(0))]));
}

/** A small picture. */
export function picture(name: string, url: string): HTMLImageElement {
  const shown = document.createElement("img");
  shown.src = url;
  shown.alt = shown.title = name;
  return shown;
}

function base64(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result).replace(/^[^,]*,/, "")));
    reader.addEventListener("error", () => reject(reader.error ?? new Error(file.type)));
    reader.readAsDataURL(file);
  });
}
