/** What a run costs, in words, and a ring that says how full the model's window is. */
import type { RunHead } from "../transcript";
import { element } from "./dom";

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

/** A ring for the share of the window that the last request took. Hidden until both are known. */
export class Ring {
  readonly element = element("span", "ring");
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
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "img");
    this.element.hidden = true;
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
    const text = parts.filter(Boolean).join("\n");
    this.element.title = text;
    this.element.setAttribute("aria-label", text);
  }
}
