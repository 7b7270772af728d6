/**
 * The first run: a server where there is none, a model's provider with its key, and a test of both.
 * Not here: where a server is looked for (`locate.ts`), the page (`webview/pages.ts`).
 */
import * as http from "node:http";
import * as vscode from "vscode";
import type { Agent, ServerState } from "../agent";
import type { ServerPage, Told } from "../chat";
import { modelIsSet } from "./configuration";
import type { ApiKey } from "./key";
import { installOwn, type Progress, pullModel } from "./locate";

/** Where servers of models listen on this machine by default. */
const LOCAL = [
  { name: "Ollama", url: "http://127.0.0.1:11434/v1" },
  { name: "LM Studio", url: "http://127.0.0.1:1234/v1" },
  { name: "llama.cpp", url: "http://127.0.0.1:8080/v1" },
  { name: "vLLM", url: "http://127.0.0.1:8000/v1" },
] as const;
const LOOK_MS = 700;
const TEST_MS = 60_000;

export interface Chosen {
  readonly provider: string;
  readonly url: string;
  readonly model: string;
  readonly key: string;
}

export class Setup {
  private page: ServerPage = { state: "starting" };
  private downloading: AbortController | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly agent: Agent,
    private readonly key: ApiKey,
    private readonly tell: (message: Told) => void,
  ) {}

  /** The server's state, for a webview that begins. */
  get server(): Told {
    return { type: "server", server: this.page };
  }

  stands(state: ServerState, problem?: string): void {
    if (this.page.state === "installing" && state !== "ready") return;
    this.show({ state, problem });
  }

  /** Opens the choice of a provider, with what is found on this machine. */
  async open(): Promise<void> {
    const found = await Promise.all(LOCAL.map(async (place) => ((await answers(`${place.url}/models`)) ? [place] : [])));
    this.tell({ type: "setup", local: found.flat() });
  }

  /** Installs a server into an environment of its own, and starts it. */
  async install(): Promise<void> {
    let log = "";
    const progress: Progress = (text) => {
      log = `${log}${text}`.split("\n").slice(-8).join("\n");
      this.show({ state: "installing", log });
    };
    progress("");
    try {
      await installOwn(this.context, progress);
    } catch (error) {
      this.show({ state: "absent", problem: error instanceof Error ? error.message : String(error), log });
      return;
    }
    this.show({ state: "starting" });
    await this.agent.restart();
    if (!modelIsSet()) await this.open();
  }

  /** Keeps what was chosen, and asks the model's server for its models. */
  async choose({ provider, url, model, key }: Chosen): Promise<void> {
    await put("model.provider", provider, "auto");
    await put("model.baseUrl", url, "");
    await put("model.name", model, "");
    if (key) await this.key.keep(key);
    try {
      if (provider === "embedded") await this.download();
      await this.agent.restart(); // what is set no longer holds until then: the server has it from its start
      const asked = this.agent.call<string[]>("codeagent.model.list", { check: true });
      const late = new Promise<never>((_, fail) => setTimeout(() => fail(new Error(vscode.l10n.t("No answer within a minute."))), TEST_MS).unref());
      const models = (await Promise.race([asked, late])) ?? [];
      const words = worksWith(models.length);
      this.tell({ type: "tested", tested: { ok: true, words, models } });
    } catch (error) {
      this.tell({ type: "tested", tested: { ok: false, words: error instanceof Error ? error.message : String(error), models: [] } });
    }
  }

  /** The user has thought better of it. */
  stopDownload(): void {
    this.downloading?.abort();
  }

  /** Has the built-in model be there, and tells how far it is. */
  private async download(): Promise<void> {
    this.downloading?.abort();
    const downloading = (this.downloading = new AbortController());
    const progress: Progress = (text) => {
      const words = text.trim().split("\n").at(-1) ?? "";
      const percent = /(\d+) ?%/.exec(words)?.[1];
      this.tell({ type: "download", percent: percent === undefined ? undefined : Number(percent), words });
    };
    progress(vscode.l10n.t("Looking for the model…"));
    try {
      await pullModel(this.context, progress, downloading.signal);
    } catch (error) {
      if (downloading.signal.aborted) throw new Error(vscode.l10n.t("Stopped. What has come is kept: the next time it goes on from there."));
      throw error;
    }
  }

  private show(page: ServerPage): void {
    this.page = page;
    this.tell(this.server);
  }
}

/** Has a setting be this value: by removing it where that is the default, unless it is set elsewhere, too. */
async function put(key: string, value: string, otherwise: string): Promise<void> {
  const target = vscode.ConfigurationTarget.Global;
  const now = (): string => vscode.workspace.getConfiguration("codeagent").get<string>(key) ?? otherwise;
  await vscode.workspace.getConfiguration("codeagent").update(key, value === otherwise ? undefined : value, target);
  if (now() !== value) await vscode.workspace.getConfiguration("codeagent").update(key, value, target);
}

/** Whether something answers there as a server of models does. */
function answers(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = http.get(url, { timeout: LOOK_MS }, (response) => {
      response.resume();
      resolve((response.statusCode ?? 500) < 500 && /json/.test(response.headers["content-type"] ?? ""));
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(false));
  });
}

function worksWith(count: number): string {
  if (count === 0) return vscode.l10n.t("It answers, and lists no models: name one.");
  return count === 1 ? vscode.l10n.t("It works: 1 model.") : vscode.l10n.t("It works: {0} models.", count);
}
