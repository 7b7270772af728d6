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
  const asked = block.approval ? command(block) : undefined;
  if (block.aboutChanges && !block.open) box.hidden = true; // what was decided is told beside the changes
  const first = /^[^?？]*[?？]/.exec(block.title)?.[0]; // what follows is told beside the changes
  const title = asked ? (block.open ? word("runCommand") : asked.command) : ((block.aboutChanges && first) || block.title);
  box.append(filled("p", "asks", icon, element("span", "", title)));
  if (!block.open) {
    box.append(element("p", "answer", block.answer === undefined ? word("unanswered") : word("answered", block.answer)));
    return box;
  }
  if (asked) box.append(code(asked.command, "bash"), ...(asked.reason ? [element("p", "note", asked.reason)] : []));
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

/** The command that is asked about, and why; undefined where it is no command. */
function command({ detail: text }: Question): { command: string; reason: string } | undefined {
  const found = /^\w+\n(\{[\s\S]*?\n\})\s*([\s\S]*)$/.exec(text);
  try {
    const given = JSON.parse(found?.[1] ?? "null") as { command?: unknown } | null;
    return typeof given?.command === "string" ? { command: given.command, reason: found?.[2]?.trim() ?? "" } : undefined;
  } catch {
    return undefined; // cut, or in words
  }
}

function detail({ detail: text, approval }: Question): HTMLElement {
  const isDiff = text.startsWith("--- ") || text.includes("<<<<<<<");
  return code(text.replace(/^ +"\w+": (null|\[\]|""|false),?\n/gm, ""), isDiff ? "diff" : approval ? "json" : "");
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
