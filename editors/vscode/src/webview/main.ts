/** The script of the transcript: applies patches to the page, says what the user does. */
import type { Block } from "../state";
import type { Patch } from "../transcript";
import { type BlockView, makeBlock } from "./blocks";
import { element } from "./dom";
import { givenBack } from "./draft";
import { makeRenderer } from "./markdown";

declare function acquireVsCodeApi(): { postMessage(message: unknown): void; getState(): unknown; setState(state: unknown): void };

const host = acquireVsCodeApi();
const words = JSON.parse(document.body.dataset["words"] ?? "{}") as Record<string, string>;
const word = (key: string, ...values: readonly unknown[]): string =>
  (words[key] ?? key).replace(/\{(\d)\}/g, (_, index: string) => String(values[Number(index)] ?? ""));
const log = document.getElementById("log") as HTMLElement;
const composer = document.getElementById("composer") as HTMLFormElement;
const render = makeRenderer(word("copy"));

interface RunView {
  readonly section: HTMLElement;
  readonly title: HTMLElement;
  readonly state: HTMLElement;
  readonly body: HTMLElement;
  readonly blocks: BlockView[];
  status: string;
}

const runs = new Map<string, RunView>();
const empty = element("p", "empty", word("empty"));
const input = document.createElement("textarea");
const send = element("button", "send", word("send")) as HTMLButtonElement;
let copying: HTMLElement | undefined;
let following = true;
let lastTop = 0;
let lastHeight = 0;
const resized = new ResizeObserver(stick);

function apply(patch: Patch): void {
  switch (patch.type) {
    case "reset":
      runs.clear();
      log.replaceChildren(empty);
      return;
    case "run":
      return drawRun(view(patch.run), patch);
    case "block":
      return put(patch.run, view(patch.run), patch.index, patch.block);
    case "append":
      return view(patch.run).blocks[patch.index]?.append(patch.text);
    case "plan":
      for (const block of view(patch.run).blocks) block.plan(patch.plan);
  }
}

function view(id: string): RunView {
  const known = runs.get(id);
  if (known) return known;
  const title = element("h2", "title");
  const state = element("span", "state");
  const head = element("header", "head");
  head.append(title, state);
  const body = element("div", "body");
  const section = element("section", "run");
  section.append(head, body);
  empty.remove();
  log.append(section);
  resized.observe(section);
  const made: RunView = { section, title, state, body, blocks: [], status: "" };
  runs.set(id, made);
  return made;
}

function drawRun(run: RunView, patch: Extract<Patch, { type: "run" }>): void {
  run.title.textContent = patch.attempt ? word("attempt", patch.attempt) : patch.title || word("run");
  run.status = patch.status;
  run.section.dataset["status"] = patch.status;
  run.state.textContent = patch.status === "running" ? patch.activity || word("working") : "";
  const busy = [...runs.values()].some((item) => item.status === "running");
  send.textContent = word(busy ? "stop" : "send");
  send.dataset["busy"] = String(busy);
}

function put(id: string, run: RunView, index: number, block: Block): void {
  const made = makeBlock(block, { word, render, runId: id });
  const old = run.blocks[index];
  if (old) old.element.replaceWith(made.element);
  else run.body.append(made.element);
  run.blocks[index] = made;
}

function say(message: object): void {
  host.postMessage(message);
}

log.addEventListener("click", (event) => {
  const target = (event.target as HTMLElement).closest<HTMLElement>("[data-url],[data-file],[data-answer],[data-say],.copy");
  if (!target) return;
  event.preventDefault();
  const { url, file, line, answer, request, run, say: what } = target.dataset;
  if (url !== undefined) say({ type: "link", url });
  else if (file !== undefined) say({ type: "open", file, line: Number(line || 1) });
  else if (answer !== undefined) say({ type: "answer", requestId: request, answer });
  else if (what !== undefined) say({ type: what, runId: run, requestId: request });
  else copy(target);
});

function copy(button: HTMLElement): void {
  const text = button.closest(".code")?.querySelector("pre")?.textContent ?? "";
  copying = button;
  say({ type: "copy", text });
}

function copied(button: HTMLElement): void {
  button.textContent = word("copied");
  setTimeout(() => (button.textContent = word("copy")), 1500);
}

function submit(): void {
  if (send.dataset["busy"] === "true") return say({ type: "stop" });
  const text = input.value.trim();
  if (!text) return;
  say({ type: "send", text });
  input.value = "";
  grow();
  follow(true);
}

/** What could not be sent is in the composer again. */
function unsent(text: string): void {
  input.value = givenBack(text, input.value);
  grow();
}

function grow(): void {
  input.rows = Math.min(8, input.value.split("\n").length);
  host.setState({ draft: input.value });
}

function compose(): void {
  input.placeholder = word("placeholder");
  input.setAttribute("aria-label", word("placeholder"));
  input.rows = 1;
  input.value = (host.getState() as { draft?: string } | undefined)?.draft ?? "";
  input.addEventListener("input", grow);
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (send.dataset["busy"] !== "true") submit();
  });
  composer.append(input, send);
  composer.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
}

// Follows the end until the user scrolls up, and again when they are back at the end. What grows is no scrolling.
log.addEventListener(
  "scroll",
  () => {
    if (log.scrollHeight - log.scrollTop - log.clientHeight < 40) follow(true);
    else if (log.scrollTop < lastTop && log.scrollHeight >= lastHeight) follow(false);
    lastTop = log.scrollTop;
    lastHeight = log.scrollHeight;
  },
  { passive: true },
);
resized.observe(log); // and each run: what comes into view gets its real height only then
new MutationObserver(stick).observe(log, { childList: true, subtree: true, characterData: true });

/** While it does not follow the end, what is read stays where it is when heights above it become known. */
function follow(end: boolean): void {
  following = end;
  log.classList.toggle("following", end);
}

function stick(): void {
  if (following) log.scrollTop = log.scrollHeight;
}

type Told =
  | { readonly type: "patches"; readonly patches: readonly Patch[] }
  | { readonly type: "copied" }
  | { readonly type: "unsent"; readonly text: string };

window.addEventListener("message", ({ data }: MessageEvent<Told>) => {
  if (data.type === "patches") data.patches.forEach(apply);
  else if (data.type === "copied" && copying) copied(copying);
  else if (data.type === "unsent") unsent(data.text);
});
compose();
follow(true);
log.append(empty);
say({ type: "ready" });
