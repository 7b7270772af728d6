/** The editor's current diagnostics of a file, as the protocol writes them. */
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";

export function diagnosticsOf(client: LanguageClient, uri: string): unknown {
  const found = vscode.languages.getDiagnostics(client.protocol2CodeConverter.asUri(uri));
  return { diagnostics: client.code2ProtocolConverter.asDiagnostics([...found]) };
}
