/** The script of the chat: applies patches to the page, says what the user does. */
import type { Controls, Told } from "../chat";
import type { Patch } from "../transcript";
import { Composer } from "./composer";
import { button, element, filled } from "./dom";
import { makeRenderer } from "./markdown";
import { SessionsPage, SetupPage } from "./pages";
import { Runs } from "./runs";
import { Shelf } from "./bar";

declare function acquireVsCodeApi(): { postMessage(message: unknown): void; getState(): unknown; setState(state: unknown): void };

interface Kept {
  readonly draft: string;
  readonly sent: readonly string[];
}

const MOST_SENT = 50;
const host = acquireVsCodeApi();
const kept = (host.getState() as Partial<Kept> | undefined) ?? {};
const words = JSON.parse(document.body.dataset["words"] ?? "{}") as Record<string, string>;
const word = (key: string, ...values: readonly unknown[]): string =>
  (words[key] ?? key).replace(/\{(\d)\}/g, (_, index: string) => String(values[Number(index)] ?? ""));
const log = document.getElementById("log") as HTMLElement;
const setUp = button(word("setUpModel"), "choice", { command: "codeagent.setup" });
const empty = filled("div", "empty", element("p", "", word("empty")), setUp);
const say = (message: object): void => host.postMessage(message);

let sent: readonly string[] = kept.sent ?? [];
let draft = kept.draft ?? "";
let controls: Controls | undefined;
let copying: HTMLElement | undefined;
let following = true;
let lastTop = 0;
let lastHeight = 0;
const resized = new ResizeObserver(stick);

const render = makeRenderer({ copy: word("copy"), insert: word("insert"), apply: word("applyCode"), terminal: word("terminal") });
const runs = new Runs({
  log, empty, word, render, added: (section) => resized.observe(section), editAgain: (runId, text) => composer.edit(runId, text),
});
const shelf = new Shelf(word);
const composer: Composer = new Composer(
  {
    word, say,
    earlier: () => [...new Set([...sent, ...runs.prompts()])],
    keep: (text) => {
      draft = text;
      host.setState({ draft, sent });
    },
    sent: () => follow(true),
  },
  draft,
);
const sessions = new SessionsPage({ word, say });
const setup = new SetupPage({ word, say, write: () => composer.focus() });

function apply(patch: Patch): void {
  if (!runs.apply(patch)) shelf.apply(patch);
  if (patch.type === "busy") composer.work(patch.run);
}

function settle(): void {
  const { head, plan } = runs.newest();
  shelf.pin(head?.run ?? "", plan, head?.todos ?? [], head?.status === "running");
  composer.ring.show(head?.last, controls?.window ?? 0);
}

window.addEventListener("focus", () => say({ type: "entered" }));
if (document.hasFocus()) say({ type: "entered" });
window.addEventListener("blur", () => say({ type: "left" }));

/** Keys of the workbench that do not reach it from here: VS Code keeps Ctrl with C and A, Alt or not, for copying. */
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || !event.altKey || event.getModifierState("AltGraph")) return;
  if (event.code === "KeyC") say({ type: "stop" });
  if (event.code === "KeyA") say({ type: "command", name: "codeagent.pending" });
});

/** What a click on an element with data says to the host. */
document.body.addEventListener("click", (event) => {
  const target = (event.target as HTMLElement).closest<HTMLElement>(
    "[data-url],[data-file],[data-answer],[data-answer-of],[data-say],[data-code],[data-change],[data-step],[data-arrange],[data-command],[data-undo]",
  );
  if (!target) return;
  const { url, file, line, answer, answerOf, request, run, say: what, code, change, act, step, arrange, command, files, undo } = target.dataset;
  event.preventDefault(); // also: what stands in a summary does not unfold it
  if (url !== undefined) say({ type: "link", url });
  else if (file !== undefined) say({ type: "open", file, line: Number(line || 1) });
  else if (answer !== undefined) say({ type: "answer", requestId: request, answer });
  else if (answerOf !== undefined) own(target, answerOf);
  else if (code !== undefined) useCode(target, code);
  else if (undo !== undefined) say({ type: "undoFile", runId: run, path: undo });
  else if (change !== undefined) say({ type: "file", runId: run, path: change, act });
  else if (step !== undefined) say({ type: "step", runId: run, stepId: step, act });
  else if (arrange !== undefined) say({ type: "arrange", runId: run, change: JSON.parse(arrange) as unknown });
  else if (command !== undefined) say({ type: "command", name: command });
  else if (what === "save") {
    say({ type: "save", files: JSON.parse(files ?? "[]") as unknown });
    (target as HTMLButtonElement).disabled = true;
  } else if (what !== undefined) say({ type: what, runId: run, requestId: request });
});

/** An answer in one's own words, with what is ticked. */
function own(target: HTMLElement, requestId: string): void {
  const box = target.closest(".question");
  const ticked = [...(box?.querySelectorAll<HTMLInputElement>("input:checked") ?? [])].map(({ value }) => value);
  const answer = [...ticked, box?.querySelector("textarea")?.value.trim() ?? ""].filter(Boolean);
  if (answer.length > 0) say({ type: "answer", requestId, answer });
}

function useCode(target: HTMLElement, how: string): void {
  const box = target.closest<HTMLElement>(".code");
  if (how === "copy") copying = target;
  say({ type: how, text: box?.querySelector("pre")?.textContent ?? "", language: box?.dataset["language"] ?? "" });
}

function copied(button: HTMLElement): void {
  const label = button.querySelector(".hidden") ?? button;
  button.classList.add("copied");
  label.textContent = word("copied");
  setTimeout(() => {
    button.classList.remove("copied");
    label.textContent = word("copy");
  }, 1500);
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
  if (end) stick();
}

function stick(): void {
  if (following) log.scrollTop = log.scrollHeight;
}

window.addEventListener("message", ({ data }: MessageEvent<Told>) => {
  switch (data.type) {
    case "patches":
      data.patches.forEach(apply);
      return settle();
    case "copied":
      return copying && copied(copying);
    case "unsent":
      return composer.unsent(data.text);
    case "sent":
      sent = [...sent.filter((text) => text !== data.text), data.text].slice(-MOST_SENT);
      return host.setState({ draft, sent });
    case "words":
      return composer.add(data.text);
    case "place":
      shelf.below(data.root);
      return composer.offer(data.place);
    case "pictures":
      return composer.pictures.show(data.pictures);
    case "controls":
      controls = data.controls;
      composer.controls(controls);
      setUp.hidden = controls.isSet;
      return settle();
    case "completion":
      return composer.complete(data.id, data.items);
    case "sessions":
      return data.open || !sessions.element.hidden ? sessions.show(data.rows, data.current) : undefined;
    case "server":
      return setup.stands(data.server);
    case "setup":
      return setup.open(data.local);
    case "download":
      return setup.downloading(data.percent, data.words);
    case "tested":
      return setup.tested(data.tested);
    case "focus":
      return composer.focus();
  }
});
document.getElementById("shelf")?.replaceWith(shelf.element);
document.body.prepend(sessions.element, setup.element);
log.before(setup.server);
follow(true);
log.append(empty);
say({ type: "ready" });
