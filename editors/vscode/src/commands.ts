/**
 * The commands: each asks for what it needs, then has the server do it. Those that need nothing pass as they are.
 * Not here: what the server does, what is shown of it.
 */
import * as vscode from "vscode";
import type { Agent } from "./agent";
import { whileOpen } from "./boxes";
import type { Pickers } from "./pickers";
import type { Prompts } from "./prompts";
import { COMMANDS } from "./protocol";
import type { Place, Review } from "./review/review";
import type { ApiKey } from "./server/key";
import { toggleInline } from "./server/configuration";
import { offer, pick } from "./server/locate";
import type { Setup } from "./server/setup";
import { type Range, shifted } from "./shifted";
import { undoable, withChanges } from "./state";
import { unlinked } from "./words";
import type { Store } from "./store";
import type { Together } from "./together";
import type { Chat } from "./views/chat";
import type { ChatActions } from "./views/chatActions";

/** What the commands work on. */
export interface Parts {
  readonly context: vscode.ExtensionContext;
  readonly channel: vscode.LogOutputChannel;
  readonly agent: Agent;
  readonly store: Store;
  readonly prompts: Prompts;
  readonly review: Review;
  readonly chat: Chat;
  readonly actions: ChatActions;
  readonly together: Together;
  readonly pickers: Pickers;
  readonly setup: Setup;
  readonly key: ApiKey;
}

type Handler = (argument?: unknown) => Promise<unknown> | unknown;

/** Registers every command of the server and of the extension. */
export function registerCommands(parts: Parts): vscode.Disposable {
  const own = { ...runCommands(parts), ...decisionCommands(parts), ...togetherCommands(parts), ...serverCommands(parts) };
  const passed = COMMANDS.filter(({ name }) => !(name in own)).map(
    ({ name, startsRun }) => [name, (argument) => parts.agent.pass(name, startsRun, argument as object | undefined)] as [string, Handler],
  );
  const all = [...Object.entries(own), ...passed].map(([name, handler]) =>
    vscode.commands.registerCommand(name, (argument?: unknown) => told(parts, () => handler(argument))),
  );
  return vscode.Disposable.from(...all);
}

/** Runs a handler; what the server refuses is shown. */
async function told(parts: Parts, work: () => unknown): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    parts.channel.error(words);
    void vscode.window.showErrorMessage(unlinked(words));
    return undefined;
  }
}

function runCommands({ agent }: Parts): Record<string, Handler> {
  const run = (command: string, argument: object, title: string): Promise<boolean> => agent.run(command, argument, title);
  const task = async (given: unknown, mode?: "plan"): Promise<boolean> => {
    const argument = asObject(given);
    const [words, place] = await asked(argument["task"], asPlace(given), vscode.l10n.t("What shall the agent do?"));
    if (typeof words !== "string") return false;
    return run("codeagent.run", { ...argument, ...place, ...(mode ? { mode } : {}), task: words }, words);
  };
  const worded = async (name: "edit" | "ask", key: string, prompt: string, given: unknown): Promise<void> => {
    const meant = asPlace(given) ?? (name === "ask" ? selection(false) : selection(true));
    if (name === "edit" && !meant) return;
    const [words, place] = await asked(asObject(given)[key], meant, prompt);
    if (typeof words === "string") await run(`codeagent.${name}`, { ...place, [key]: words }, words);
  };
  const selected = (name: string, title: string): [string, Handler] => [
    `codeagent.${name}`,
    async (given) => {
      const place = asPlace(given) ?? selection(true);
      if (place) await run(`codeagent.${name}`, place, `${title}: ${fileName(place.uri)}`);
    },
  ];
  return {
    "codeagent.run": (given) => task(given),
    "codeagent.plan": (given) => task(given, "plan"),
    "codeagent.attempts": async () => {
      const title = vscode.l10n.t("How many attempts?");
      const count = await vscode.window.showQuickPick(["2", "3", "4", "5"], { title, ignoreFocusOut: true });
      if (count) await task({ attempts: Number(count) });
    },
    "codeagent.ask": (given) => worded("ask", "question", vscode.l10n.t("What do you want to know?"), given),
    "codeagent.prompt": (given) => {
      const place = asPlace(given) ?? selection(false);
      return agent.call("codeagent.prompt", place?.range ? place : undefined);
    },
    "codeagent.prompt.send": async (given) => {
      const place = asPlace(given) ?? selection(true);
      if (place) await run("codeagent.prompt.send", { uri: place.uri }, vscode.l10n.t("Task"));
    },
    "codeagent.edit": (given) => worded("edit", "instruction", vscode.l10n.t("What shall be changed here?"), given),
    ...Object.fromEntries([
      selected("explain", vscode.l10n.t("Explain")),
      selected("fix", vscode.l10n.t("Fix")),
      selected("refactor", vscode.l10n.t("Refactor")),
      selected("document", vscode.l10n.t("Add Documentation")),
      selected("test", vscode.l10n.t("Add Tests")),
    ]),
    "codeagent.trust": (given) => run("codeagent.trust", asObject(given), vscode.l10n.t("Trust This Workspace's Content")),
    "codeagent.runFile": async (given) => {
      const place = asPlace(given) ?? selection(true);
      if (place) await run("codeagent.runFile", { uri: place.uri }, vscode.l10n.t("Run {0}", fileName(place.uri)));
    },
  };
}

function decisionCommands({ agent, store, prompts, review }: Parts): Record<string, Handler> {
  const decide = async (given: unknown, decision: (runId: string) => Promise<unknown>): Promise<void> => {
    const runId = asObject(given)["runId"] ?? review.shown(given) ?? withChanges(store.state)?.runId;
    if (typeof runId === "string") await decision(runId);
    else void vscode.window.showInformationMessage(vscode.l10n.t("No changes wait for a decision."));
  };
  const settle = (verdict: "apply" | "discard", given: unknown): Promise<void> => {
    const { files, hunks } = asObject(given);
    return decide(given, (runId) => review.settle(verdict, runId, { ...(files ? { files } : {}), ...(hunks ? { hunks } : {}) }));
  };
  const tried = (name: "prove" | "minimize", given: unknown): Promise<void> =>
    decide(given, (runId) => agent.call(`codeagent.${name}`, { runId }));
  const step = (name: string) => async (given: unknown): Promise<void> => {
    const { runId, stepId } = asObject(given) as { runId?: string; stepId?: string };
    if (runId !== undefined && stepId !== undefined) await agent.call(`codeagent.plan.${name}`, { runId, stepId });
  };
  return {
    "codeagent.cancel": (given) => {
      const { runId } = asObject(given);
      return agent.call("codeagent.cancel", typeof runId === "string" ? { runId } : undefined);
    },
    "codeagent.pending": (given) => prompts.show(typeof given === "string" ? given : undefined),
    "codeagent.review": (given) => review.open(asObject(given)["runId"] as string | undefined),
    "codeagent.review.openFile": (given) => review.openFile(given as Place),
    "codeagent.apply": (given) => settle("apply", given),
    "codeagent.discard": (given) => settle("discard", given),
    "codeagent.prove": (given) => tried("prove", given),
    "codeagent.minimize": (given) => tried("minimize", given),
    "codeagent.review.acceptFile": (given) => review.decide("apply", "file", asReviewPlace(given)),
    "codeagent.review.discardFile": (given) => review.decide("discard", "file", asReviewPlace(given)),
    "codeagent.review.acceptHunk": (given) => review.decide("apply", "hunk", asReviewPlace(given)),
    "codeagent.review.discardHunk": (given) => review.decide("discard", "hunk", asReviewPlace(given)),
    "codeagent.review.nextHunk": () => review.move(1),
    "codeagent.review.previousHunk": () => review.move(-1),
    "codeagent.undo": (given) => {
      const { runId = undoable(store.state)?.runId, files } = asObject(given);
      return agent.call("codeagent.undo", typeof runId === "string" ? { runId, ...(files ? { files } : {}) } : undefined);
    },
    "codeagent.plan.show": step("show"),
    "codeagent.plan.retryStep": step("retryStep"),
    "codeagent.plan.skipStep": step("skipStep"),
    "codeagent.plan.rollback": step("rollback"),
  };
}

function togetherCommands({ together }: Parts): Record<string, Handler> {
  const word = (given: unknown, key: string): string | undefined => asObject(given)[key] as string | undefined;
  return {
    "codeagent.steer": (given) => together.steer(word(given, "runId"), word(given, "text")),
    "codeagent.runs": () => together.runs(),
    "codeagent.commands.list": () => together.commands(),
    "codeagent.session.search": (given) => together.search(word(given, "query")),
    "codeagent.session.rewind": (given) => together.rewind(word(given, "runId")),
    "codeagent.session.fork": (given) => together.fork(word(given, "runId")),
  };
}

function serverCommands(parts: Parts): Record<string, Handler> {
  const { actions, agent, channel, chat, context, key, pickers, setup, store } = parts;
  return {
    "codeagent.menu": () => pickers.menu(),
    "codeagent.session.new": () => pickers.newSession(),
    "codeagent.session.list": async () => {
      await chat.reveal(true);
      await actions.sessions("", true);
    },
    "codeagent.setup": async () => {
      await chat.reveal(true);
      await setup.open();
    },
    "codeagent.installOwn": () => setup.install(),
    "codeagent.chooseServer": async () => {
      if (await pick()) await agent.restart();
    },
    "codeagent.effort": () => pickers.effort(),
    "codeagent.session.export": (given) => pickers.exportSession(asObject(given)["sessionId"] as string | undefined),
    "codeagent.model.list": () => pickers.models(),
    "codeagent.mode.set": (given) => pickers.mode(asObject(given)["mode"] as string | undefined),
    "codeagent.tools.list": () => pickers.tools(),
    "codeagent.approvals.list": () => pickers.approvals(),
    "codeagent.inline.toggle": () => toggleInline(),
    "codeagent.index.rebuild": () => agent.call("codeagent.index.rebuild"),
    "codeagent.callGraph": () => {
      const editor = vscode.window.activeTextEditor;
      const word = editor?.document.getWordRangeAtPosition(editor.selection.active);
      if (editor && word) return agent.call("codeagent.index.graph", { function: editor.document.getText(word) });
      return vscode.window.showInformationMessage(vscode.l10n.t("Put the cursor on the name of a function first."));
    },
    "codeagent.dependencyGraph": () => {
      const place = selection(false);
      return agent.call("codeagent.index.graph", place ? { uri: place.uri } : {});
    },
    "codeagent.doctor": () => pickers.doctor(),
    "codeagent.chat.open": (given) => {
      const { runId } = asObject(given);
      if (typeof runId === "string") store.dispatch({ type: "local_shown", run_id: runId });
      return chat.reveal(true);
    },
    "codeagent.setApiKey": async () => {
      if (await key.ask()) await agent.restart();
    },
    "codeagent.clearApiKey": async () => {
      await key.forget();
      await agent.restart();
    },
    "codeagent.restart": () => agent.restart(),
    "codeagent.showLogs": () => channel.show(),
    "codeagent.install": async () => {
      if (await offer(context)) await agent.restart();
    },
    "codeagent.walkthrough": () =>
      vscode.commands.executeCommand("workbench.action.openWalkthrough", `${context.extension.id}#start`, false),
  };
}

interface TextPlace {
  readonly uri: string;
  readonly range?: Range;
}

/** The words that are given, or asked for; and where a place is by then, for text may be typed above it meanwhile. */
async function asked<T extends TextPlace | undefined>(given: unknown, place: T, prompt: string): Promise<[unknown, T]> {
  let now = place;
  const uri = place && vscode.Uri.parse(place.uri).toString();
  const listener = vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
    if (now?.range && document.uri.toString() === uri) now = { ...now, range: contentChanges.reduce(shifted, now.range) };
  });
  try {
    const words = given ?? (await ask(prompt));
    return [words, now];
  } finally {
    listener.dispose();
  }
}

/** Asks for words. */
async function ask(title: string): Promise<string | undefined> {
  const words = await whileOpen(vscode.window.showInputBox({ title, ignoreFocusOut: true }));
  return words?.trim() || undefined;
}

/** What the active editor has selected, where the cursor is else. Says so when there must be one and is none. */
function selection(needed: boolean): TextPlace | undefined {
  const editor = vscode.window.activeTextEditor;
  if (!editor || !["file", "untitled"].includes(editor.document.uri.scheme)) {
    if (needed) void vscode.window.showInformationMessage(vscode.l10n.t("Open a file and select code first."));
    return undefined;
  }
  const at = (position: vscode.Position): Range["start"] => ({ line: position.line, character: position.character });
  const { start, end, isEmpty } = editor.selection;
  const uri = editor.document.uri.toString();
  return isEmpty && !needed ? { uri } : { uri, range: { start: at(start), end: at(end) } };
}

function asObject(given: unknown): Readonly<Record<string, unknown>> {
  return typeof given === "object" && given !== null && !(given instanceof vscode.Uri) ? (given as Record<string, unknown>) : {};
}

/** A place that the server named, in a code action. */
function asPlace(given: unknown): TextPlace | undefined {
  const argument = asObject(given);
  return typeof argument["uri"] === "string" ? (argument as unknown as TextPlace) : undefined;
}

/** A place of a review, from a lens or the tree; a title button gives something else. */
function asReviewPlace(given: unknown): Place | undefined {
  const { runId, path, hunk } = asObject(given);
  if (typeof runId !== "string" || typeof path !== "string") return undefined;
  return typeof hunk === "string" ? { runId, path, hunk } : { runId, path };
}

function fileName(uri: string): string {
  return vscode.Uri.parse(uri).path.split("/").at(-1) ?? uri;
}
