/** What a run costs, in words, and a ring that says how full the model's window is. */
import type { RunHead } from "../transcript";
import { button, element, filled } from "./dom";

type Word = (key: string, ...values: readonly unknown[]) => string;

/** Seconds, tokens, the share from the cache, and the price as far as they are known. */
export function costLine(head: RunHead, now: number, word: Word): string {
  const { prompt, cached, completion, cost } = head.usage;
  const seconds = head.began > 0 ? Math.max(0, (head.over || now) - head.began) : 0;
  const share = prompt > 0 && cached > 0 ? Math.floor((100 * Math.min(cached, prompt)) / prompt) : 0;
  return [
    seconds >= 0.5 || head.status === "running" ? duration(seconds) : "",
    prompt + completion > 0 ? word("tokens", compact(prompt + completion)) : "",
    share > 0 ? word("fromCache", share) : "",
    dollars(cost ?? 0),
  ].filter(Boolean).join(" · ");
}

export function compact(count: number): string {
  if (count < 1000) return String(count);
  return count < 100_000 ? `${(count / 1000).toFixed(1)}k` : `${Math.round(count / 1000)}k`;
}

function duration(seconds: number): string {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

function dollars(cost: number): string {
  if (cost < 0.0001) return "";
  return cost >= 0.1 ? `$${cost.toFixed(2)}` : `$${Number(cost.toPrecision(2))}`;
}

const RADIUS = 6;
const ROUND = 2 * Math.PI * RADIUS;
const SVG = "http://www.w3.org/2000/svg";

/** Of what a prompt consists, in the order in which a model reads it. */
const KINDS = ["tools", "system", "summary", "notes", "talk", "files", "output", "results", "pictures"];

/**
 * A ring for the share of the window that the last request took, and a panel that says what it consists of, which opens
 * on a click. Hidden until something is known.
 */
export class Ring {
  readonly element = button("", "ring");
  readonly panel = element("section", "contents");
  private readonly arc: SVGCircleElement;

  constructor(private readonly word: Word) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 16 16");
    svg.setAttribute("aria-hidden", "true");
    const circle = (name: string): SVGCircleElement => {
      const made = document.createElementNS(SVG, "circle");
      for (const [key, value] of Object.entries({ cx: 8, cy: 8, r: RADIUS, class: name })) made.setAttribute(key, String(value));
      svg.append(made);
      return made;
    };
    circle("track");
    this.arc = circle("arc");
    this.element.append(svg);
    this.element.hidden = this.panel.hidden = true;
    this.panel.id = "contents";
    this.panel.setAttribute("aria-label", word("contents"));
    this.element.setAttribute("aria-controls", "contents");
    this.element.addEventListener("click", () => this.open(this.panel.hidden));
    document.addEventListener("click", ({ target }) => {
      if (!this.panel.contains(target as Node) && !this.element.contains(target as Node)) this.open(false);
    });
    document.addEventListener("keydown", ({ key }) => key === "Escape" && this.open(false));
    this.open(false);
  }

  private open(shown: boolean): void {
    this.panel.hidden = !shown;
    this.element.setAttribute("aria-expanded", String(shown));
  }

  show(last: RunHead["last"], window: number): void {
    this.element.hidden = !last;
    if (!last) return;
    const used = last.prompt + last.completion;
    const share = window > 0 ? Math.min(1, used / window) : 0;
    this.arc.setAttribute("stroke-dasharray", `${share * ROUND} ${ROUND}`);
    this.element.classList.toggle("full", share > 0.8);
    const parts = [
      window > 0 ? this.word("windowUsed", compact(used), compact(window), Math.round(100 * share)) : this.word("windowUnknown", compact(used)),
      this.word("windowPrompt", compact(last.prompt - last.cached)),
      last.cached > 0 ? this.word("windowCached", compact(last.cached)) : "",
      this.word("windowReply", compact(last.completion)),
    ];
    const kinds = KINDS.flatMap((kind) => (last.context?.[kind] ? [[kind, last.context[kind]] as const] : []));
    const listed = kinds.map(([kind, tokens]) => `${this.word(`kind.${kind}`)}: ${compact(tokens)}`);
    const text = [...parts, ...listed].filter(Boolean).join("\n");
    this.element.title = text;
    this.element.setAttribute("aria-label", text);
    this.draw(parts, kinds, last.prompt, window);
  }

  /** The panel: a bar for each kind, as long as its share of the prompt. */
  private draw(parts: readonly string[], kinds: readonly (readonly [string, number])[], prompt: number, window: number): void {
    const [head = "", ...rest] = parts.filter(Boolean);
    const most = Math.max(1, ...kinds.map(([, tokens]) => tokens));
    const rows = kinds.map(([kind, tokens]) => {
      const bar = element("span", "bar");
      bar.style.width = `${(100 * tokens) / most}%`;
      const share = `${Math.round((100 * tokens) / Math.max(1, prompt))} %`;
      return filled("li", "", element("span", "kindname", this.word(`kind.${kind}`)), filled("span", "track", bar), element("span", "count", `${compact(tokens)} · ${share}`));
    });
    const left = window > prompt ? element("p", "note", this.word("windowLeft", compact(window - prompt))) : undefined;
    this.panel.replaceChildren(element("h2", "", head), element("p", "note", rest.join(" · ")), filled("ul", "", ...rows), ...(left ? [left] : []));
  }
}
