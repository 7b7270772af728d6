/** Puts the parts together. Not here: anything that a part does. */
import * as vscode from "vscode";
import { Agent } from "./agent";
import type { Told } from "./chat";
import { registerCommands } from "./commands";
import { Pickers } from "./pickers";
import { Prompts } from "./prompts";
import { restore } from "./review/restore";
import { Review, saveFiles } from "./review/review";
import { own } from "./server/configuration";
import { ApiKey } from "./server/key";
import { Offered } from "./server/offered";
import { Setup } from "./server/setup";
import { type AnyEvent, condition, newest, type State, undoable, withChanges, working } from "./state";
import { Store } from "./store";
import { Together } from "./together";
import { Chat } from "./views/chat";
import { ChatActions } from "./views/chatActions";
import { InlineStatus } from "./views/inlineStatus";
import { Reports } from "./views/reports";
import { StatusBar } from "./views/statusBar";
import { Surroundings } from "./views/surroundings";

const OURS = /\b(review|transcript)\/[\w-]+\.(diff|md)$/;

export function activate(context: vscode.ExtensionContext): void {
  const channel = vscode.window.createOutputChannel("CodeAgent", { log: true });
  const store = new Store();
  const key = new ApiKey(context.secrets);
  const offered = new Offered();
  const agent: Agent = new Agent(context, channel, key, store, {
    event: (event) => store.dispatch(event),
    prompt: (title) => prompts.waitFor(title),
    input: (requestId, secret) => prompts.input(requestId, secret),
    // In the chat stands how the newest run has ended.
    isTold: (message) => chat.isShown && newest(store.state)?.error === message,
    shows: (uri) => shows(uri, chat),
    inline: (state) => inlineStatus.show(state),
    lenses: (document, found) => review.inCode.lenses(document, found, chat.isShown),
    offered,
  });
  const review: Review = new Review(agent, store, offered);
  const respond = async (requestId: string, answer: string | readonly string[]): Promise<void> => {
    await agent.call("codeagent.respond", { requestId, answer });
  };
  const prompts: Prompts = new Prompts(store, {
    respond,
    review: (runId) => review.open(runId),
    inChat: () => chat.inUse,
  });
  const reports = new Reports();
  const tell = (message: Told): void => chat.tell(message);
  const surroundings = new Surroundings(agent, store, tell);
  const pickers = new Pickers(agent, store, reports, surroundings);
  const together = new Together(agent, store);
  const setup = new Setup(context, agent, key, tell);
  const actions = new ChatActions({ agent, store, prompts, review, together, pickers, setup, tell });
  const chat: Chat = new Chat(context.extensionUri, store, {
    heard: (said) => actions.heard(said),
    begin: () => [...surroundings.all(), setup.server, ...actions.begin()],
  });
  const inlineStatus = new InlineStatus();
  context.subscriptions.push(
    reports,
    inlineStatus,
    offered,
    channel,
    store,
    agent,
    review,
    prompts,
    surroundings,
    chat,
    new StatusBar(agent, store),
    registerCommands({ context, channel, agent, store, prompts, review, chat, actions, together, pickers, setup, key }),
    agent.onState((server) => {
      setup.stands(server, agent.problem);
      if (server === "ready") void restore(agent, store).catch((error: unknown) => channel.warn(String(error)));
    }),
    store.onGlance(setContexts),
    store.onEvent((event) => void react(event, chat)),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("codeagent.server")) void agent.restart({ quiet: true });
      else if (event.affectsConfiguration("codeagent")) agent.settingsChanged();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => agent.settingsChanged()),
  );
  void agent.start({ quiet: true });
}

/** What happens besides drawing. */
async function react(event: AnyEvent, chat: Chat): Promise<void> {
  if (event.type === "local_request" && own("transcript.reveal", true)) await chat.reveal();
  if (event.type === "changes_applied" && own("edits.saveAfterApply", false)) await saveFiles(event.files_changed);
}

/** Documents of the server that this extension shows in its own way. */
function shows(uri: string, chat: Chat): boolean {
  const kind = OURS.exec(decodeURIComponent(uri))?.[1];
  if (kind === "transcript") void chat.reveal();
  return kind !== undefined;
}

function setContexts(state: State): void {
  const contexts = {
    "codeagent.running": working(state) !== undefined,
    "codeagent.waiting": condition(state) === "waiting",
    "codeagent.changes": withChanges(state) !== undefined,
    "codeagent.applied": undoable(state) !== undefined,
  };
  for (const [name, value] of Object.entries(contexts)) void vscode.commands.executeCommand("setContext", name, value);
}
