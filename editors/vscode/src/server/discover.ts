/**
 * Where the server may be, in order: setting, bundled, beside the selected Python, PATH, uvx or pipx.
 * Pure but for the file check handed in. Not here: asking the user, starting it.
 */
import * as path from "node:path";

export const PROGRAM = "codeagent-lsp";

export type Source = "setting" | "bundled" | "python" | "path" | "own" | "uvx" | "pipx";

/** A way to start the server. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly source: Source;
}

/** What is known when looking. `isProgram` says whether a path is an executable file. */
export interface Surroundings {
  readonly setting: readonly string[];
  readonly extensionFolder: string;
  readonly ownEnvironment: string;
  /** The selected Python interpreter; undefined when none is known or the workspace is not trusted. */
  readonly python: string | undefined;
  readonly pathVariable: string;
  readonly windows: boolean;
  /** Whether the user agreed to a download by uvx or pipx. */
  readonly mayDownload: boolean;
  readonly isProgram: (file: string) => boolean;
}

/** The first way that works; undefined when there is none. */
export function discover(around: Surroundings): Launch | undefined {
  const [command, ...args] = around.setting;
  if (command !== undefined && command !== "") return { command, args, source: "setting" };
  const bin = around.windows ? "Scripts" : "bin";
  const candidates: (readonly [string, Source] | undefined)[] = [
    [path.join(around.extensionFolder, "bundled", bin), "bundled"],
    around.python === undefined ? undefined : [path.dirname(around.python), "python"],
    ...onPath(around).map((folder) => [folder, "path"] as const),
    [path.join(around.ownEnvironment, bin), "own"],
  ];
  for (const candidate of candidates) {
    const file = candidate && program(candidate[0], PROGRAM, around);
    if (candidate && file) return { command: file, args: [], source: candidate[1] };
  }
  return around.mayDownload ? downloader(around) : undefined;
}

/** What could download and start it: uvx, else pipx. */
export function downloader(around: Surroundings): Launch | undefined {
  for (const [name, args, source] of [
    ["uvx", [PROGRAM], "uvx"],
    ["pipx", ["run", PROGRAM], "pipx"],
  ] as const) {
    for (const folder of onPath(around)) {
      const file = program(folder, name, around);
      if (file) return { command: file, args, source };
    }
  }
  return undefined;
}

function onPath(around: Surroundings): string[] {
  return around.pathVariable.split(around.windows ? ";" : ":").filter((folder) => path.isAbsolute(folder));
}

function program(folder: string, name: string, around: Surroundings): string | undefined {
  const file = path.join(folder, around.windows ? `${name}.exe` : name);
  return around.isProgram(file) ? file : undefined;
}
