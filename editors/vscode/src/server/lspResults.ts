/** Results of VS Code's language commands as LSP has them; what the client's own converter has no function for. */
import type * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";

type Converter = LanguageClient["code2ProtocolConverter"];

/** A symbol as the commands give it: VS Code's own objects have the fields of both kinds. */
type Symbol = vscode.SymbolInformation & Partial<vscode.DocumentSymbol>;

/** What an edit holds, with the files that it makes, moves and deletes; VS Code's API only tells of the texts. */
interface Entries {
  _allEntries?(): readonly { readonly _type: number; readonly from?: vscode.Uri; readonly to?: vscode.Uri }[];
}

const FILE = 1;
const TEXT = 2;

export function asLocations(found: readonly (vscode.Location | vscode.LocationLink)[] | undefined, out: Converter): unknown[] {
  return (found ?? []).map((place) => {
    if ("uri" in place) return out.asLocation(place);
    return { uri: out.asUri(place.targetUri), range: out.asRange(place.targetSelectionRange ?? place.targetRange) };
  });
}

/** One hover of all that were found. */
export function asHover(found: readonly vscode.Hover[] | undefined, out: Converter): unknown {
  const value = (found ?? []).flatMap(({ contents }) => contents.map(markdown)).filter(Boolean).join("\n\n");
  const range = found?.find((hover) => hover.range)?.range;
  return value ? { contents: { kind: "markdown", value }, ...(range ? { range: out.asRange(range) } : {}) } : null;
}

export function asSymbols(found: readonly Symbol[] | undefined, out: Converter): unknown[] {
  return (found ?? []).map((symbol) => {
    const { name, range, selectionRange, detail, children, containerName, location, tags } = symbol;
    const common = { name, kind: out.asSymbolKind(symbol.kind), ...(tags ? { tags: out.asSymbolTags(tags) } : {}) };
    if (!range || !selectionRange) return { ...common, containerName, location: out.asLocation(location) };
    const places = { range: out.asRange(range), selectionRange: out.asRange(selectionRange) };
    return { ...common, detail, ...places, children: asSymbols(children as Symbol[], out) };
  });
}

/** Null for an edit that cannot be written in the protocol: snippets and cells of notebooks. */
export function asEdit(edit: vscode.WorkspaceEdit | undefined, out: Converter): unknown {
  const all = (edit as Entries | undefined)?._allEntries?.() ?? [];
  if (edit === undefined || all.some(({ _type }) => _type !== FILE && _type !== TEXT)) return null;
  const texts = edit.entries().map(([uri, edits]) => [out.asUri(uri), edits.map((one) => out.asTextEdit(one))] as const);
  const files = all.filter(({ _type }) => _type === FILE).map(({ from, to }) => operation(from, to, out));
  if (texts.length + files.length === 0) return null;
  if (files.length === 0) return { changes: Object.fromEntries(texts) };
  const changes = texts.map(([uri, edits]) => ({ textDocument: { uri, version: null }, edits }));
  return { documentChanges: [...files, ...changes] };
}

export function asSignatureHelp(found: vscode.SignatureHelp | undefined): unknown {
  if (!found?.signatures.length) return null;
  const { signatures, activeSignature, activeParameter } = found;
  return { signatures: signatures.map(signature), activeSignature, activeParameter };
}

function signature({ label, documentation, parameters, activeParameter }: vscode.SignatureInformation): unknown {
  const named = parameters.map((one) => ({ label: one.label, documentation: words(one.documentation) }));
  return { label, documentation: words(documentation), parameters: named, activeParameter };
}

function operation(from: vscode.Uri | undefined, to: vscode.Uri | undefined, out: Converter): unknown {
  if (from && to) return { kind: "rename", oldUri: out.asUri(from), newUri: out.asUri(to) };
  return to ? { kind: "create", uri: out.asUri(to) } : { kind: "delete", uri: from && out.asUri(from) };
}

function words(text: string | vscode.MarkdownString | undefined): unknown {
  return typeof text === "object" ? { kind: "markdown", value: text.value } : text;
}

function markdown(text: vscode.MarkdownString | vscode.MarkedString): string {
  if (typeof text === "string") return text;
  return "language" in text ? `\`\`\`${text.language}\n${text.value}\n\`\`\`` : text.value;
}
