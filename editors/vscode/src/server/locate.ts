/** Looks for the server on this machine and, where there is none, offers to get one. */
import { type ChildProcessByStdio, spawn, type SpawnOptions } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import type { Readable } from "node:stream";
import * as vscode from "vscode";
import { own } from "./configuration";
import { discover, downloader, type Launch, PROGRAM, type Surroundings } from "./discover";

const MAY_DOWNLOAD = "codeagent.mayDownload";
const INSTALL_MS = 600_000;

/** A way to start the server, or undefined when there is none (yet). */
export async function locate(context: vscode.ExtensionContext): Promise<Launch | undefined> {
  return discover(await surroundings(context));
}

/** Says that there is no server and offers ways to get one; true when there is one now. */
export async function offer(context: vscode.ExtensionContext): Promise<boolean> {
  const around = await surroundings(context);
  const loader = downloader(around);
  const run = loader && vscode.l10n.t("Run with {0}", path.parse(loader.command).name);
  const install = vscode.l10n.t("Install");
  const choose = vscode.l10n.t("Choose a Program…");
  const chosen = await vscode.window.showWarningMessage(
    vscode.l10n.t("The agent's program, {0}, was not found beside the selected Python or on PATH.", PROGRAM),
    ...(run ? [run] : []),
    install,
    choose,
  );
  if (chosen === undefined) return false;
  if (chosen === run) {
    await context.globalState.update(MAY_DOWNLOAD, true);
    return true;
  }
  return chosen === install ? installWithNotice(context) : pick();
}

/** Asks for a program to start; false when the user chose none. */
export async function pick(): Promise<boolean> {
  const [file] = (await vscode.window.showOpenDialog({ title: PROGRAM, canSelectMany: false })) ?? [];
  if (!file) return false;
  const target = vscode.ConfigurationTarget.Global;
  await vscode.workspace.getConfiguration("codeagent").update("server.command", [file.fsPath], target);
  return true;
}

/** Hears what an installation prints. */
export type Progress = (text: string) => void;

async function installWithNotice(context: vscode.ExtensionContext): Promise<boolean> {
  const options = { location: vscode.ProgressLocation.Notification, title: vscode.l10n.t("Installing {0}", PROGRAM) };
  try {
    await vscode.window.withProgress(options, () => installOwn(context, () => undefined));
    return true;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    void vscode.window.showErrorMessage(vscode.l10n.t("{0} could not be installed: {1}", PROGRAM, reason));
    return false;
  }
}

/** Makes an environment of the extension's own with the server in it; throws what went wrong, as the program said it. */
export async function installOwn(context: vscode.ExtensionContext, progress: Progress): Promise<void> {
  const around = await surroundings(context);
  const python = around.python ?? (process.platform === "win32" ? "python" : "python3");
  const inside = path.join(around.ownEnvironment, process.platform === "win32" ? "Scripts" : "bin", "python");
  await program(python, ["-m", "venv", around.ownEnvironment], progress);
  await program(inside, ["-m", "pip", "install", "--disable-pip-version-check", "--upgrade", carried(context.extensionPath) ?? PROGRAM], progress);
}

/** The wheel that the extension carries, if it does. */
function carried(folder: string): string | undefined {
  try {
    const wheel = fs.readdirSync(path.join(folder, "server")).find((name) => name.startsWith("codeagent_lsp-") && name.endsWith(".whl"));
    return wheel && path.join(folder, "server", wheel);
  } catch {
    return undefined;
  }
}

/** The download of the built-in model, as the server's program does it; what has come is kept when it is stopped. */
export async function pullModel(context: vscode.ExtensionContext, progress: Progress, stopped: AbortSignal): Promise<void> {
  const found = await locate(context);
  if (!found) throw new Error(vscode.l10n.t("The agent's program, {0}, was not found beside the selected Python or on PATH.", PROGRAM));
  const args = found.args.at(-1) === "serve" ? found.args.slice(0, -1) : found.args;
  await program(found.command, [...args, "model", "pull"], progress, { signal: stopped, killSignal: "SIGINT" });
}

async function surroundings(context: vscode.ExtensionContext): Promise<Surroundings> {
  return {
    setting: own<string[]>("server.command", []),
    extensionFolder: context.extensionPath,
    ownEnvironment: path.join(context.globalStorageUri.fsPath, "server"),
    python: vscode.workspace.isTrusted ? await selectedPython() : undefined,
    pathVariable: process.env["PATH"] ?? "",
    windows: process.platform === "win32",
    mayDownload: context.globalState.get(MAY_DOWNLOAD, false),
    isProgram,
  };
}

/** The interpreter that the Python extension has selected, else the setting for it, else the workspace's own. */
async function selectedPython(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension("ms-python.python");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  if (extension) {
    const api = (await extension.activate()) as PythonApi | undefined;
    const found = api?.environments?.getActiveEnvironmentPath?.(folder)?.path;
    if (found !== undefined && path.isAbsolute(found)) return found;
  }
  const named = vscode.workspace.getConfiguration("python", folder).get<string>("defaultInterpreterPath");
  if (named !== undefined && path.isAbsolute(named)) return named;
  const local = folder && path.join(folder.fsPath, ".venv", process.platform === "win32" ? "Scripts" : "bin", "python");
  return local !== undefined && fs.existsSync(local) ? local : undefined;
}

interface PythonApi {
  readonly environments?: { getActiveEnvironmentPath?(resource?: vscode.Uri): { readonly path: string } | undefined };
}

function isProgram(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

function program(file: string, args: readonly string[], progress: Progress, how: SpawnOptions = { timeout: INSTALL_MS }): Promise<void> {
  return new Promise((resolve, reject) => {
    let problems = "";
    const child = spawn(file, args, { ...how, stdio: ["ignore", "pipe", "pipe"] }) as ChildProcessByStdio<null, Readable, Readable>;
    child.stdout.setEncoding("utf8").on("data", progress);
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      problems = (problems + text).slice(-4000);
      progress(text);
    });
    child.on("error", (error) => reject(new Error(`${file}: ${error.message}`)));
    child.on("close", (code) => {
      if (code === 0) return resolve();
      const said = problems.trim().split("\n").filter((line) => !line.startsWith("[notice]")).slice(-3).join("\n");
      reject(new Error(said || `${file} ${args.join(" ")}: ${code}`));
    });
  });
}
