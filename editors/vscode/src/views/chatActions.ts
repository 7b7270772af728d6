/** What the chat's buttons and its input do. Not here: the webview (`chat.ts`), runs and sessions themselves. */
import * as path from "node:path";
import * as vscode from "vscode";
import type { Agent } from "../agent";
import type { Completion, Picture, Said, SessionRow, StepChange, Told } from "../chat";
import type { Pickers } from "../pickers";
import type { Prompts } from "../prompts";
import { type Review, saveFiles } from "../review/review";
import { arranged } from "../runState";
import type { Store } from "../store";
import type { Setup } from "../server/setup";
import type { Together } from "../together";
import { unlinked } from "../words";

export interface ChatParts {
  readonly agent: Agent;
  readonly store: Store;
  readonly prompts: Prompts;
  readonly review: Review;
  readonly together: Together;
  readonly pickers: Pickers;
  readonly setup: Setup;
  tell(message: Told): void;
}

/** Commands that a button of the chat may run by name. */
const COMMANDS = new Set([
  "codeagent.setup", "codeagent.model.list", "codeagent.mode.set", "codeagent.effort", "codeagent.showLogs", "codeagent.restart",
  "codeagent.installOwn", "codeagent.chooseServer", "codeagent.doctor", "codeagent.pending",
]);
const RUN_COMMANDS: Readonly<Record<string, string>> = {
  review: "codeagent.review",
  undo: "codeagent.undo",
  applyAll: "codeagent.apply",
  discardAll: "codeagent.discard",
  prove: "codeagent.prove",
};

export class ChatActions {
  /** What goes along with the next task: kept here, as a page that is hidden forgets. */
  private pictures: readonly Picture[] = [];
  /** The task that was sent last, to be tried again with its pictures. */
  private last: { readonly text: string; readonly along: object } = { text: "", along: {} };

  private arranged: Promise<void> = Promise.resolve();

  constructor(private readonly parts: ChatParts) {}

  /** What a page that begins has to know. */
  begin(): readonly Told[] {
    return [{ type: "pictures", pictures: this.pictures }];
  }

  async heard(said: Said): Promise<void> {
    const { agent, prompts, store, tell, together } = this.parts;
    const run = (name: string, argument?: object): Thenable<unknown> => vscode.commands.executeCommand(name, argument);
    switch (said.type) {
      case "send":
        return this.send(said);
      case "stop":
        return void (await run("codeagent.cancel"));
      case "copy":
        await vscode.env.clipboard.writeText(String(said.text));
        return tell({ type: "copied" });
      case "insert":
        return insert(String(said.text));
      case "terminal":
        return inTerminal(String(said.text));
      case "applyCode":
        return void (await this.applyCode(String(said.text), String(said.language ?? "")));
      case "answer":
        return prompts.answer(String(said.requestId), [said.answer].flat().map(String));
      case "question":
        return void (await vscode.commands.executeCommand("codeagent.pending", String(said.requestId)));
      case "rewind":
        return void (await together.rewind(String(said.runId)));
      case "fork":
        return together.fork(String(said.runId));
      case "withdraw":
        await agent.call("codeagent.withdraw", { itemId: String(said.runId) });
        return store.dispatch({ type: "local_withdrawn", run_id: String(said.runId) });
      case "show":
        return store.dispatch({ type: "local_shown", run_id: String(said.runId) });
      case "retry": {
        const words = store.state.runs[String(said.runId)];
        if (!words) return;
        const task = words.task ?? words.title;
        return void (await agent.run("codeagent.run", { task, ...(task === this.last.text ? this.last.along : {}) }, task));
      }
      case "undoFile":
        return void (await run("codeagent.undo", { runId: String(said.runId), files: [String(said.path)] }));
      case "attached":
        this.pictures = said.pictures.map(({ name, data }) => ({ name: String(name), data: String(data) }));
        return;
      case "file":
        return this.file(String(said.runId), String(said.path), said.act);
      case "step":
        return void (await run(`codeagent.plan.${String(said.act)}`, { runId: String(said.runId), stepId: String(said.stepId) }));
      case "arrange":
        return this.arrange(String(said.runId), said.change);
      case "save":
        return saveFiles(said.files.map(String));
      case "complete": {
        const items = (await agent.call<Completion[]>("codeagent.prompt.complete", { text: String(said.text) }).catch(() => [])) ?? [];
        return tell({ type: "completion", id: said.id, items });
      }
      case "mention":
        return tell({ type: "words", text: said.uris.map(mention).filter(Boolean).join(" ") });
      case "sessions":
        return this.sessions(String(said.query), false);
      case "resume":
        return void (await agent.enter("codeagent.session.resume", { sessionId: String(said.sessionId) }));
      case "export":
        return this.parts.pickers.exportSession(String(said.sessionId));
      case "delete":
        await this.parts.pickers.forget(String(said.sessionId), String(said.title));
        return this.sessions("", false);
      case "command":
        return COMMANDS.has(said.name) ? void (await run(said.name)) : undefined;
      case "stopDownload":
        return this.parts.setup.stopDownload();
      case "setup":
        return this.parts.setup.choose({ provider: String(said.provider), url: String(said.url), model: String(said.model), key: String(said.key) });
      case "open":
        return openFile(String(said.file), Number(said.line));
      case "link": {
        const url = vscode.Uri.parse(String(said.url), true);
        if (url.scheme === "https" || url.scheme === "http") await vscode.env.openExternal(url);
        return;
      }
    }
    const named = RUN_COMMANDS[said.type];
    if (named) await run(named, { runId: String((said as { runId?: unknown }).runId) });
  }

  /** Shows the sessions in the chat; with words only those in which they were said. */
  async sessions(query: string, open: boolean): Promise<void> {
    const { agent, store, tell } = this.parts;
    const all = (await agent.call<SessionRow[]>("codeagent.session.list")) ?? [];
    const found = query ? ((await agent.call<{ sessionId: string; excerpt?: string }[]>("codeagent.session.search", { query })) ?? []) : [];
    const excerpts = new Map(found.map(({ sessionId, excerpt }) => [sessionId, excerpt]));
    const fits = ({ sessionId, title }: SessionRow): boolean => !query || excerpts.has(sessionId) || title.toLowerCase().includes(query.toLowerCase());
    const rows = all.filter(fits).map(({ sessionId, title, modified }) => ({ sessionId, title, modified, excerpt: excerpts.get(sessionId) }));
    tell({ type: "sessions", rows, current: store.state.sessionId ?? "", open });
  }

  /** A task, words to the run at work, or the next task; what could not be sent goes back into the input. */
  private async send(said: Extract<Said, { type: "send" }>): Promise<void> {
    const { agent, together, tell } = this.parts;
    const text = String(said.text);
    const pictures = said.how === "steer" ? [] : this.pictures;
    if (pictures.length > 0) this.attach([]);
    const along = pictures.length > 0 ? { attachments: pictures } : {};
    const place = said.place && { uri: String(said.place.uri), ...(said.place.range ? { range: said.place.range } : {}) };
    try {
      const back = !said.again || (await together.rewindFully(String(said.again)));
      const sent = !back ? false
        : said.how === "steer" ? await together.say(text)
        : said.how === "queue" ? await agent.run("codeagent.enqueue", { task: text, ...place, ...along }, text)
        : await agent.run("codeagent.run", { task: text, ...place, ...along }, text);
      if (!sent && pictures.length > 0) this.attach([...pictures, ...this.pictures]);
      if (sent) this.last = { text, along };
      tell(sent ? { type: "sent", text } : { type: "unsent", text }); // without a server, the page says what to do
    } catch (error) {
      if (pictures.length > 0) this.attach([...pictures, ...this.pictures]);
      tell({ type: "unsent", text });
      void vscode.window.showErrorMessage(unlinked(error instanceof Error ? error.message : String(error)));
    }
  }

  /** Has these pictures go along with the next task. */
  private attach(pictures: readonly Picture[]): void {
    this.pictures = pictures;
    this.parts.tell({ type: "pictures", pictures });
  }

  /** Code goes into the file that is open as a change to be reviewed: the agent finds its place. */
  private async applyCode(code: string, language: string): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (!document || document.uri.scheme !== "file") {
      void vscode.window.showInformationMessage(vscode.l10n.t("Open a file and select code first."));
      return;
    }
    const name = vscode.workspace.asRelativePath(document.uri);
    const task = vscode.l10n.t("Put this code into {0} where it belongs:", name);
    await this.parts.agent.run("codeagent.run", { task: `${task}\n\n\`\`\`${language}\n${code}\n\`\`\``, uri: document.uri.toString() }, task);
  }

  /** One change of a plan after the other: each is made to what the one before has left. */
  private arrange(runId: string, change: StepChange): Promise<void> {
    const { agent, store } = this.parts;
    const made = this.arranged.then(async () => {
      const steps = arranged(store.state.runs[runId]?.plan?.steps ?? [], change);
      if (steps) await agent.call("codeagent.plan.edit", { runId, steps });
    });
    this.arranged = made.catch(() => undefined); // whoever made the change is told
    return made;
  }

  private async file(runId: string, file: string, act: "open" | "apply" | "discard"): Promise<void> {
    const { review } = this.parts;
    if (act === "open") await review.openFile({ runId, path: file });
    else await vscode.commands.executeCommand(`codeagent.review.${act === "apply" ? "acceptFile" : "discardFile"}`, { runId, path: file });
  }
}

async function insert(text: string): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return void vscode.window.showInformationMessage(vscode.l10n.t("Open a file and select code first."));
  await editor.edit((edit) => edit.replace(editor.selection, text));
}

/** Runs a command in the terminal once the user has said so. */
async function inTerminal(text: string): Promise<void> {
  const command = text.replace(/^\$ /gm, "").trim();
  const yes = vscode.l10n.t("Run");
  const chosen = await vscode.window.showWarningMessage(vscode.l10n.t("Run this in the terminal?"), { modal: true, detail: command }, yes);
  if (chosen !== yes) return;
  const terminal = vscode.window.activeTerminal ?? vscode.window.createTerminal("CodeAgent");
  terminal.show(true);
  terminal.sendText(command, true);
}

/** A file as it is mentioned in a task. */
function mention(uri: string): string {
  const parsed = vscode.Uri.parse(uri);
  const name = vscode.workspace.asRelativePath(parsed, false);
  return parsed.scheme === "file" || parsed.scheme === "vscode-remote" ? (/\s/.test(name) ? `@"${name}"` : `@${name}`) : "";
}

/** Opens a file of the workspace at a line; others are left alone. */
async function openFile(name: string, line: number): Promise<void> {
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    const file = path.resolve(folder.uri.fsPath, name);
    const inside = file === folder.uri.fsPath || file.startsWith(folder.uri.fsPath + path.sep);
    const uri = vscode.Uri.file(file);
    const found = inside && (await vscode.workspace.fs.stat(uri).then(() => true, () => false));
    if (!found) continue;
    const at = new vscode.Position(Math.max(0, (Number.isFinite(line) ? line : 1) - 1), 0);
    await vscode.window.showTextDocument(uri, { selection: new vscode.Range(at, at) });
    return;
  }
  void vscode.window.showInformationMessage(vscode.l10n.t("{0} is not in this workspace.", name));
}
