/**
 * Answers the server's questions to the other language servers of this editor, by VS Code's own commands for them.
 * Nothing is applied, opened or run: an edit is an answer like any other. Not here: diagnostics (`diagnostics.ts`).
 */
import type * as vscode from "vscode";
import type { LanguageClient, Position, Range } from "vscode-languageclient/node";
import { LENT_METHODS } from "../protocol";
import { asEdit, asHover, asLocations, asSignatureHelp, asSymbols } from "./lspResults";

const MILLISECONDS = 2500; // the server waits a little longer
const RESOLVED = 20; // code actions; those after them have no edit yet and are left out
const KEPT = 300; // items of hierarchies that can be asked about again
const EVERYWHERE = "workspace/symbol";
const OWN_KIND = /(^|\.)codeagent$/;

export type Converters = Pick<LanguageClient, "code2ProtocolConverter" | "protocol2CodeConverter">;

/** What is asked of the editor. */
export interface Editor {
  execute(command: string, ...given: unknown[]): PromiseLike<unknown>;
  /** The document, loaded if it was not, and never shown. */
  load(uri: vscode.Uri): PromiseLike<{ readonly version: number }>;
}

export interface Question {
  readonly uri: string;
  readonly method: string;
  readonly params: Params;
}

export interface Answer {
  readonly server: "vscode";
  readonly result: unknown;
}

interface Params {
  readonly position: Position;
  readonly range: Range;
  readonly newName: string;
  readonly options: { readonly tabSize: number; readonly insertSpaces: boolean };
  readonly query: string;
  readonly context?: { readonly only?: readonly string[]; readonly triggerCharacter?: string };
  readonly item: { readonly data?: { readonly codeagent?: number } };
  readonly edit?: unknown;
}

type Item = vscode.CallHierarchyItem | vscode.TypeHierarchyItem;
type Ask = (uri: vscode.Uri, params: Params) => Promise<unknown>;

export class LanguageServers {
  private readonly items = new Map<number, Item>();
  private readonly methods: ReadonlyMap<string, Ask>;
  private last = 0;

  constructor(
    private readonly convert: Converters,
    private readonly editor: Editor,
    private readonly milliseconds = MILLISECONDS,
  ) {
    this.methods = new Map(Object.entries(this.table()));
  }

  /** The answer of all of them together; null when there is none for the current text in time. */
  async answer(question: Question): Promise<Answer[] | null> {
    const ask = LENT_METHODS.includes(question.method) ? this.methods.get(question.method) : undefined;
    if (ask === undefined) return null;
    try {
      const uri = this.convert.protocol2CodeConverter.asUri(question.uri);
      const document = question.method === EVERYWHERE ? undefined : await this.editor.load(uri);
      const before = document?.version;
      const result = await within(this.milliseconds, ask(uri, question.params));
      return document?.version !== before || isNothing(result) ? null : [{ server: "vscode", result }];
    } catch {
      return null; // a server that refuses, or params of another shape
    }
  }

  private table(): Record<string, Ask> {
    const { code2ProtocolConverter: out, protocol2CodeConverter: into } = this.convert;
    const run = <T>(command: string, ...given: unknown[]): PromiseLike<T> =>
      this.editor.execute(`vscode.${command}`, ...given) as PromiseLike<T>;
    const locations = (command: string): Ask => async (uri, { position }) =>
      asLocations(await run(command, uri, into.asPosition(position)), out);
    const edits = async (found: PromiseLike<vscode.TextEdit[]>): Promise<unknown> =>
      ((await found) ?? []).map((edit) => out.asTextEdit(edit));
    const prepare = (command: string): Ask => async (uri, { position }) =>
      ((await run<Item[]>(command, uri, into.asPosition(position))) ?? []).map((item) => this.keep(item));
    const types = (command: string): Ask => async (_uri, { item }) =>
      ((await run<Item[]>(command, this.kept(item))) ?? []).map((found) => this.keep(found));
    return {
      "textDocument/definition": locations("executeDefinitionProvider"),
      "textDocument/references": locations("executeReferenceProvider"),
      "textDocument/implementation": locations("executeImplementationProvider"),
      "textDocument/typeDefinition": locations("executeTypeDefinitionProvider"),
      "textDocument/hover": async (uri, { position }) =>
        asHover(await run("executeHoverProvider", uri, into.asPosition(position)), out),
      "textDocument/documentSymbol": async (uri) => asSymbols(await run("executeDocumentSymbolProvider", uri), out),
      [EVERYWHERE]: async (_uri, { query }) =>
        asSymbols(await run("executeWorkspaceSymbolProvider", String(query)), out),
      "textDocument/prepareRename": async (uri, { position }) => {
        const found = await run<{ range: vscode.Range; placeholder: string }>("prepareRename", uri, into.asPosition(position));
        return { range: out.asRange(found.range), placeholder: found.placeholder };
      },
      "textDocument/rename": async (uri, { position, newName }) =>
        asEdit(await run("executeDocumentRenameProvider", uri, into.asPosition(position), String(newName)), out),
      "textDocument/codeAction": async (uri, { range, context }) =>
        this.actions(await run("executeCodeActionProvider", uri, into.asRange(range), context?.only?.[0], RESOLVED)),
      "codeAction/resolve": async (_uri, params) => (params.edit ? params : null), // all were resolved
      "textDocument/formatting": (uri, { options }) => edits(run("executeFormatDocumentProvider", uri, options)),
      "textDocument/rangeFormatting": (uri, { range, options }) =>
        edits(run("executeFormatRangeProvider", uri, into.asRange(range), options)),
      "textDocument/signatureHelp": async (uri, { position, context }) =>
        asSignatureHelp(await run("executeSignatureHelpProvider", uri, into.asPosition(position), context?.triggerCharacter)),
      "textDocument/prepareCallHierarchy": prepare("prepareCallHierarchy"),
      "textDocument/prepareTypeHierarchy": prepare("prepareTypeHierarchy"),
      "callHierarchy/incomingCalls": async (_uri, { item }) =>
        ((await run<vscode.CallHierarchyIncomingCall[]>("provideIncomingCalls", this.kept(item))) ?? []).map((call) => ({
          from: this.keep(call.from),
          fromRanges: out.asRanges(call.fromRanges),
        })),
      "callHierarchy/outgoingCalls": async (_uri, { item }) =>
        ((await run<vscode.CallHierarchyOutgoingCall[]>("provideOutgoingCalls", this.kept(item))) ?? []).map((call) => ({
          to: this.keep(call.to),
          fromRanges: out.asRanges(call.fromRanges),
        })),
      "typeHierarchy/supertypes": types("provideSupertypes"),
      "typeHierarchy/subtypes": types("provideSubtypes"),
    };
  }

  /** Those that are edits, without their commands and without our own. */
  private actions(found: readonly (vscode.CodeAction | vscode.Command)[] | undefined): unknown[] {
    const { code2ProtocolConverter: out } = this.convert;
    return (found ?? []).flatMap((action) => {
      const edit = "edit" in action && action.edit ? asEdit(action.edit, out) : null;
      if (edit === null || !("edit" in action) || OWN_KIND.test(action.kind?.value ?? "")) return [];
      const { title, kind, isPreferred, disabled } = action;
      return [{ title, kind: kind?.value, isPreferred, disabled, edit }];
    });
  }

  /** The item as the protocol has it, by whose `data` it is found again. */
  private keep(item: Item): unknown {
    this.last += 1;
    this.items.set(this.last, item);
    const [oldest] = this.items.keys();
    if (this.items.size > KEPT && oldest !== undefined) this.items.delete(oldest);
    const made = this.convert.code2ProtocolConverter.asCallHierarchyItem(item); // both kinds have the same fields
    return { ...made, data: { codeagent: this.last } };
  }

  private kept(item: Params["item"]): Item {
    const found = this.items.get(item.data?.codeagent ?? 0);
    if (found === undefined) throw new Error("an item that is not kept any more");
    return found;
  }
}

function isNothing(result: unknown): boolean {
  return result === undefined || result === null || (Array.isArray(result) && result.length === 0);
}

/** What is promised, null when it comes too late. */
async function within<T>(milliseconds: number, promised: PromiseLike<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((done) => {
    timer = setTimeout(() => done(null), milliseconds);
  });
  try {
    return await Promise.race([promised, late]);
  } finally {
    clearTimeout(timer);
  }
}
