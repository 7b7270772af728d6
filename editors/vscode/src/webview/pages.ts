/** Pages that take the place of the conversation: the sessions, and the first run (the server, the model). */
import type { ServerPage, SessionRow, Tested } from "../chat";
import { button, codicon, element, filled, iconButton } from "./dom";

type Word = (key: string, ...values: readonly unknown[]) => string;

interface Host {
  word: Word;
  say(message: object): void;
}

export class SessionsPage {
  readonly element = element("section", "page");
  private readonly search = document.createElement("input");
  private readonly list = element("ul", "sessions");
  private timer = 0;

  constructor(private readonly host: Host) {
    const { word } = host;
    this.element.hidden = true;
    this.search.type = "search";
    this.search.placeholder = word("searchSessions");
    this.search.setAttribute("aria-label", word("searchSessions"));
    this.search.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => host.say({ type: "sessions", query: this.search.value.trim() }), 250);
    });
    const close = iconButton("close", word("close"));
    close.addEventListener("click", () => this.close());
    this.element.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
    this.element.append(filled("header", "pageHead", element("h2", "", word("sessions")), close), this.search, this.list);
  }

  show(rows: readonly SessionRow[], current: string): void {
    const { word, say } = this.host;
    const was = this.element.hidden;
    this.element.hidden = false;
    const items = rows.map(({ sessionId, title, modified, excerpt }) => {
      const open = button("", "session", {});
      open.append(element("span", "title", title || word("untitled")), element("span", "when", when(modified)));
      if (excerpt) open.append(element("span", "excerpt", excerpt));
      if (sessionId === current) open.setAttribute("aria-current", "true");
      open.addEventListener("click", () => {
        this.close();
        say({ type: "resume", sessionId, title });
      });
      const act = (icon: string, label: string, type: string): HTMLElement => {
        const made = iconButton(icon, word(label, title));
        made.addEventListener("click", () => say({ type, sessionId, title }));
        return made;
      };
      return filled("li", "", open, act("export", "exportSession", "export"), act("trash", "deleteSession", "delete"));
    });
    this.list.replaceChildren(...(items.length ? items : [element("li", "note", word(this.search.value ? "nothingFound" : "noSessions"))]));
    if (was) this.search.focus();
  }

  close(): void {
    this.element.hidden = true;
    this.search.value = "";
  }
}

function when(seconds: number): string {
  const date = new Date(seconds * 1000);
  const today = new Date().toDateString() === date.toDateString();
  return today ? date.toLocaleTimeString(document.documentElement.lang, { hour: "2-digit", minute: "2-digit" }) : date.toLocaleDateString(document.documentElement.lang);
}

interface Provider {
  readonly id: string;
  readonly name: string;
  readonly provider: string;
  readonly url: string;
  readonly icon: string;
  readonly needsKey: boolean;
  readonly asksUrl?: true;
}

const PROVIDERS: readonly Provider[] = [
  { id: "openai", name: "OpenAI", provider: "auto", url: "https://api.openai.com/v1", icon: "cloud", needsKey: true },
  { id: "anthropic", name: "Anthropic", provider: "anthropic", url: "https://api.anthropic.com", icon: "cloud", needsKey: true },
  { id: "gemini", name: "Gemini", provider: "gemini", url: "https://generativelanguage.googleapis.com", icon: "cloud", needsKey: true },
  { id: "openrouter", name: "OpenRouter", provider: "openai", url: "https://openrouter.ai/api/v1", icon: "cloud", needsKey: true },
  { id: "azure", name: "Azure", provider: "openai", url: "", icon: "azure", needsKey: true, asksUrl: true },
  { id: "compatible", name: "", provider: "auto", url: "", icon: "plug", needsKey: false, asksUrl: true },
  { id: "embedded", name: "", provider: "embedded", url: "", icon: "chip", needsKey: false },
];

/** The server's state with what helps, and the choice of a model's provider with a test. */
interface SetupHost extends Host {
  /** Puts the cursor into the field for the task. */
  write(): void;
}

export class SetupPage {
  readonly server = element("section", "server");
  readonly element = element("section", "page");
  private readonly cards = element("div", "cards");
  private readonly form = element("div", "providerForm");
  private local: readonly { readonly name: string; readonly url: string }[] = [];
  private readonly outcome = element("p", "outcome");

  constructor(private readonly host: SetupHost) {
    const { word } = host;
    this.element.hidden = this.server.hidden = this.form.hidden = true;
    this.outcome.setAttribute("role", "status");
    const close = iconButton("close", word("close"));
    close.addEventListener("click", () => (this.element.hidden = true));
    this.element.addEventListener("keydown", (event) => event.key === "Escape" && (this.element.hidden = true));
    this.element.append(
      filled("header", "pageHead", element("h2", "", word("setupTitle")), close), element("p", "note", word("setupText")), this.cards,
    );
  }

  /** How the server stands; there is nothing to see while it is well. */
  stands({ state, problem, log }: ServerPage): void {
    const { word } = this.host;
    this.server.hidden = state === "ready";
    if (this.server.hidden) return;
    const busy = state === "starting" || state === "installing";
    const head = filled("p", "standing", codicon(busy ? "loading" : "warning"), element("span", "", word(`server.${state}`)));
    const parts: HTMLElement[] = [head];
    if (problem) parts.push(element("p", "problem", problem));
    if (log) parts.push(element("pre", "printed", log));
    const row = element("div", "row");
    const offer = (label: string, command: string, primary = false): void => void row.append(button(word(label), primary ? "choice primary" : "choice", { command }));
    if (state === "absent") {
      offer("installServer", "codeagent.installOwn", true);
      offer("chooseProgram", "codeagent.chooseServer");
    }
    if (state === "failed" || state === "stopped") offer("startServer", "codeagent.restart", true);
    if (state === "failed") offer("reinstall", "codeagent.installOwn");
    if (state !== "starting") offer("showLog", "codeagent.showLogs");
    if (row.childElementCount) parts.push(row);
    this.server.replaceChildren(...parts);
    const printed = this.server.querySelector("pre");
    if (printed) printed.scrollTop = printed.scrollHeight;
  }

  open(local: readonly { readonly name: string; readonly url: string }[]): void {
    const { word } = this.host;
    this.local = local;
    this.element.hidden = false;
    this.outcome.textContent = "";
    const found = this.local.map(({ name, url }): Provider => ({ id: url, name, provider: "auto", url, icon: "vm", needsKey: false }));
    this.cards.replaceChildren(...[...found, ...PROVIDERS].map((provider) => {
      const card = button("", "card");
      const about = provider.icon === "vm" ? word("foundHere", provider.url) : word(`provider.${provider.id}`);
      card.append(codicon(provider.icon), element("span", "title", provider.name || word(`name.${provider.id}`)), element("span", "detail", about));
      card.addEventListener("click", () => this.choose(provider, card));
      return card;
    }));
    this.form.hidden = true;
    this.cards.querySelector("button")?.focus();
  }

  tested({ ok, words, models }: Tested): void {
    this.outcome.className = `outcome ${ok ? "ok" : "problem"}`;
    this.outcome.replaceChildren(...(ok ? [codicon("pass"), element("span", "", words), this.leave()] : [words]));
    this.outcome.scrollIntoView({ block: "nearest" });
    const list = this.form.querySelector("datalist");
    list?.replaceChildren(...models.map((name) => Object.assign(document.createElement("option"), { value: name })));
  }

  /** What leads on from a model that answers. */
  private leave(): HTMLElement {
    const begin = button(this.host.word("begin"), "choice primary");
    begin.addEventListener("click", () => {
      this.element.hidden = true;
      this.host.write();
    });
    return begin;
  }

  /** How far the download of the built-in model is; without a number it only begins. */
  downloading(percent: number | undefined, words: string): void {
    const { word, say } = this.host;
    const bar = document.createElement("progress");
    bar.max = 100;
    if (percent !== undefined) bar.value = percent;
    bar.setAttribute("aria-label", word("downloading"));
    const stop = button(word("cancel"), "choice small");
    stop.addEventListener("click", () => say({ type: "stopDownload" }));
    const begins = !this.outcome.classList.contains("download");
    this.outcome.className = "outcome download";
    this.outcome.replaceChildren(bar, element("span", "", words), stop);
    if (begins) this.outcome.scrollIntoView({ block: "nearest" });
  }

  private choose(provider: Provider, card: HTMLElement): void {
    const { word, say } = this.host;
    for (const other of this.cards.querySelectorAll(".card")) other.setAttribute("aria-pressed", String(other === card));
    const field = (name: string, type: string, value: string): HTMLInputElement => {
      const made = document.createElement("input");
      made.type = type;
      made.value = value;
      made.id = `setup-${name}`;
      made.autocomplete = "off";
      return made;
    };
    const labelled = (name: string, input: HTMLInputElement): HTMLElement => {
      const label = document.createElement("label");
      label.htmlFor = input.id;
      label.textContent = word(`field.${name}`);
      return filled("div", "field", label, input);
    };
    const [url, key, model] = [field("url", "url", provider.url), field("key", "password", ""), field("model", "text", "")];
    const models = document.createElement("datalist");
    models.id = "setup-models";
    model.setAttribute("list", models.id);
    model.placeholder = word("modelAuto");
    const test = button(word("saveAndTest"), "choice primary");
    test.addEventListener("click", () => {
      this.outcome.className = "outcome";
      this.outcome.textContent = word("testing");
      this.outcome.scrollIntoView({ block: "nearest" });
      say({ type: "setup", provider: provider.provider, url: url.value.trim(), model: model.value.trim(), key: key.value.trim() });
      key.value = "";
    });
    this.form.replaceChildren(
      ...(provider.id === "embedded" ? [] : [labelled("url", url)]),
      ...(provider.needsKey || provider.asksUrl ? [labelled("key", key), element("p", "note", word("keyKept"))] : []),
      ...(provider.id === "embedded" ? [element("p", "note", word("embeddedText"))] : [labelled("model", model), models]),
      filled("div", "row", test),
      this.outcome,
    );
    this.outcome.textContent = "";
    card.after(this.form); // the eyes stay where they are, however long the list is
    this.form.hidden = false;
    this.form.scrollIntoView({ block: "nearest" });
    (provider.asksUrl ? url : provider.needsKey ? key : test).focus();
  }
}
