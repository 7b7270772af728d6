/**
 * Markdown to HTML for untrusted text: no HTML of its own, no images, only web links; file names in code become
 * buttons that jump, blocks of code get buttons. Not here: the page.
 */
import MarkdownIt from "markdown-it";
import { highlighted } from "./highlight";

/** Lines of code that are laid out together; those out of sight are not. */
const LINES = 200;
const FILE = /^([\w@.~+-]+(?:[\\/][\w@.~+ -]+)*\.\w{1,10})(?::(\d+))?(?::\d+)?$/;
const SHELL = new Set(["sh", "bash", "shell", "zsh", "console", "powershell", "pwsh", "cmd", "bat"]);

/** What the buttons of a block of code are called. */
export interface CodeWords {
  readonly copy: string;
  readonly insert: string;
  readonly apply: string;
  readonly terminal: string;
}

/** Renders one settled or growing piece. */
export function makeRenderer(words: CodeWords): (text: string) => string {
  const markdown = new MarkdownIt({ html: false, linkify: false, breaks: false });
  markdown.disable(["image"]);
  markdown.validateLink = (url) => /^https?:\/\//i.test(url);
  const escape = markdown.utils.escapeHtml;
  markdown.renderer.rules["link_open"] = (tokens, index) =>
    `<a href="#" class="link" data-url="${escape(String(tokens[index]?.attrGet("href") ?? ""))}" title="${escape(String(tokens[index]?.attrGet("href") ?? ""))}">`;
  markdown.renderer.rules["code_inline"] = (tokens, index) => {
    const text = tokens[index]?.content ?? "";
    const place = FILE.exec(text);
    const inner = `<code>${escape(text)}</code>`;
    return place
      ? `<button class="file" data-file="${escape(place[1] ?? "")}" data-line="${place[2] ?? ""}">${inner}</button>`
      : inner;
  };
  const action = (name: string, icon: string, label: string): string =>
    `<button class="${name}" type="button" data-code="${name}" title="${escape(label)}"><span class="codicon codicon-${icon}" aria-hidden="true"></span><span class="hidden">${escape(label)}</span></button>`;
  const block = (content: string, language: string): string => {
    const own = SHELL.has(language.toLowerCase())
      ? action("terminal", "terminal", words.terminal)
      : action("insert", "insert", words.insert) + action("applyCode", "git-stash-apply", words.apply);
    const code = content.split("\n").length > LINES ? inParts(content, escape) : (highlighted(content, language) ?? escape(content));
    const bar = `<div class="bar"><span>${escape(language)}</span><span class="actions">${own}${action("copy", "copy", words.copy)}</span></div>`;
    return `<div class="code" data-language="${escape(language)}">${bar}<pre tabindex="0"><code>${code}</code></pre></div>`;
  };
  markdown.renderer.rules["fence"] = (tokens, index) =>
    block(tokens[index]?.content ?? "", (tokens[index]?.info ?? "").trim().split(/\s+/)[0] ?? "");
  markdown.renderer.rules["code_block"] = (tokens, index) => block(tokens[index]?.content ?? "", "");
  return (text) => markdown.render(text);
}

/** Long code in parts of some lines, each an element; its text stays the same. */
function inParts(content: string, escape: (text: string) => string): string {
  const lines = content.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  if (lines.length <= LINES) return escape(content);
  const parts: string[] = [];
  for (let at = 0; at < lines.length; at += LINES) parts.push(lines.slice(at, at + LINES).join(""));
  return parts.map((part) => `<span class="lines">${escape(part)}</span>`).join("");
}
