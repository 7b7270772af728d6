/**
 * What the server is told of the settings: only what the user set, so that its environment counts for the rest.
 * Pure. Not here: reading VS Code's configuration.
 */

/** One setting as VS Code reports it: where it is set, and the value in force. */
export interface Inspected {
  readonly key: string;
  readonly restricted: boolean;
  readonly global: unknown;
  readonly workspace: unknown;
  readonly effective: unknown;
}

/** The section as the server wants it, nested by the dots. An untrusted workspace leaves the agent read-only. */
export function section(settings: readonly Inspected[], trusted: boolean): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const item of settings) {
    const value = !trusted && item.restricted ? item.global : item.effective;
    const set = item.global !== undefined || (item.workspace !== undefined && (trusted || !item.restricted));
    if (set && value !== undefined && value !== null && value !== "") assign(result, item.key.split("."), value);
  }
  if (!trusted) assign(result, ["permissions", "mode"], "readOnly");
  return result;
}

function assign(node: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [name = "", ...rest] = path;
  if (rest.length === 0) {
    node[name] = value;
    return;
  }
  const inner = (node[name] ?? {}) as Record<string, unknown>;
  node[name] = inner;
  assign(inner, rest, value);
}
