/** Questions and approvals: choices, another answer in one's own words, what is asked about as code. */
import type { Block } from "../state";
import type { Context } from "./blocks";
import { button, codicon, element, filled } from "./dom";
import { highlighted } from "./highlight";

type Question = Extract<Block, { kind: "question" }>;

export function makeQuestion(block: Question, { word }: Pick<Context, "word">): HTMLElement {
  const box = element("section", `question ${block.open ? "open" : "over"}`);
  box.dataset["asked"] = block.requestId;
  box.setAttribute("aria-label", word(block.approval ? "approval" : "asks"));
  const icon = codicon(block.approval ? "shield" : "question");
  const asked = block.approval ? call(block, word) : undefined;
  if (block.aboutChanges && !block.open) box.hidden = true; // what was decided is told beside the changes
  const first = /^[^?？]*[?？]/.exec(block.title)?.[0]; // what follows is told beside the changes
  const words = asked?.asks && (block.open ? asked.asks : asked.code);
  const title = words || (block.aboutChanges && first) || block.title;
  box.append(filled("p", "asks", icon, element("span", "", title)));
  if (!block.open) {
    box.append(element("p", "answer", block.answer === undefined ? word("unanswered") : word("answered", block.answer)));
    return box;
  }
  if (asked) {
    if (asked.code) box.append(code(asked.code, asked.language));
    box.append(...asked.notes.map((told) => element("p", "note", told)));
  }
  else if (block.detail && !block.aboutChanges && !block.title.includes(block.detail.trim())) box.append(detail(block));
  const own = field(block, word);
  if (block.multiple) {
    box.append(ticks(block), own);
    return box;
  }
  const row = element("div", "row");
  block.choices.forEach((choice, index) => {
    const first = block.approval && index === 0; // the safe one, which comes first
    row.append(button(choice, first ? "choice primary" : "choice", { answer: choice, request: block.requestId }));
  });
  if (!block.byAgent) {
    if (block.choices.length === 0) row.append(button(word("answer"), "choice", { say: "question", request: block.requestId }));
    box.append(row);
  } else if (block.choices.length > 0) {
    const other = button(word("other"), "choice");
    other.addEventListener("click", () => {
      other.replaceWith(own);
      own.querySelector("textarea")?.focus();
    });
    row.append(other);
    box.append(row);
  } else {
    box.append(own);
  }
  return box;
}

function ticks({ choices }: Question): HTMLElement {
  const list = element("ul", "ticks");
  for (const choice of choices) {
    const tick = document.createElement("input");
    tick.type = "checkbox";
    tick.value = choice;
    list.append(filled("li", "", filled("label", "", tick, element("span", "", choice))));
  }
  return list;
}

/** What is asked before a call of a tool: what the call is about as code, how it would run and why it is asked. */
interface Asking {
  readonly asks?: string;
  readonly code: string;
  readonly language: string;
  readonly notes: readonly string[];
}

/** The call that is asked about; undefined where it is none. */
function call({ detail: text, title }: Question, word: Context["word"]): Asking | undefined {
  const found = /^(\w+)\n(\{[\s\S]*?\n\})\s*([\s\S]*)$/.exec(text);
  if (!found) return undefined;
  const [tool, written, told] = found.slice(1) as [string, string, string];
  const notes = told.split("\n\n").filter(Boolean);
  try {
    const given = Object.entries(JSON.parse(written) as object).filter(([, value]) => !isNothing(value));
    const { command } = Object.fromEntries(given) as { command?: unknown };
    if (tool === "run_cmd" && typeof command === "string") return { asks: word("runCommand"), code: command, language: "bash", notes };
    if (tool === "run_tests") return { asks: word("runTests"), code: given.map(([, value]) => String(value)).join(" "), language: "", notes };
    const isTold = given.every(([, value]) => title.includes(String(value)));
    return { code: isTold ? "" : JSON.stringify(Object.fromEntries(given), null, 2), language: "json", notes };
  } catch {
    return undefined; // cut, or in words
  }
}

function isNothing(value: unknown): boolean {
  return value === null || value === "" || value === false || (Array.isArray(value) && value.length === 0);
}

function detail({ detail: text, approval }: Question): HTMLElement {
  const isDiff = text.startsWith("--- ") || text.includes("<<<<<<<");
  return code(text, isDiff ? "diff" : approval ? "json" : "");
}

function code(text: string, language: string): HTMLElement {
  const shown = element("pre", "detail");
  shown.tabIndex = 0;
  const coloured = highlighted(text, language);
  if (coloured === undefined) shown.textContent = text;
  else shown.innerHTML = coloured;
  return shown;
}

/** A field for an answer in one's own words. A secret is typed into the editor's box, which shows it to nobody. */
function field(block: Question, word: Context["word"]): HTMLElement {
  const input = document.createElement("textarea");
  input.rows = 1;
  input.placeholder = word("ownAnswer");
  input.setAttribute("aria-label", word("ownAnswer"));
  const send = button(word("answerNow"), "choice primary", { answerOf: block.requestId });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send.click();
  });
  return filled("div", "own row", input, send);
}
