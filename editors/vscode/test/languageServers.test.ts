import assert from "node:assert/strict";
import { test } from "node:test";
import type * as vscode from "vscode";
import { LENT_METHODS } from "../src/protocol";
import { type Converters, type Editor, LanguageServers, type Question } from "../src/server/languageServers";

const URI = "file:///w/a.ts";
const PLACE = { position: { line: 1, character: 2 } };
const RANGE = { start: { line: 0, character: 0 }, end: { line: 0, character: 5 } };
const same = (value: unknown): unknown => value;

// In these tests, VS Code's objects are what the protocol has, so that converting them changes nothing.
const convert = {
  code2ProtocolConverter: {
    asUri: same, asRange: same, asRanges: same, asLocation: same, asTextEdit: same, asSymbolTags: same,
    asSymbolKind: (kind: number) => kind + 1,
    asCallHierarchyItem: ({ name }: { name: string }) => ({ name }),
  },
  protocol2CodeConverter: { asUri: same, asPosition: same, asRange: same },
} as unknown as Converters;

type Execute = (command: string, ...given: unknown[]) => unknown;

function servers(execute: Execute, version: () => number = () => 1, milliseconds?: number): LanguageServers {
  const document = {
    get version(): number {
      return version();
    },
  };
  const editor: Editor = {
    execute: async (command, ...given) => execute(command, ...given),
    load: async (uri) => (String(uri).startsWith("file:///w/") ? document : assert.fail("no such file")),
  };
  return new LanguageServers(convert, editor, milliseconds);
}

/** The result for one method; undefined where the answer is null. */
async function ask(lent: LanguageServers, method: string, params: unknown = PLACE): Promise<unknown> {
  const answer = await lent.answer({ uri: URI, method, params } as Question);
  assert.ok(answer === null || (answer.length === 1 && answer[0]?.server === "vscode"));
  return answer?.[0]?.result;
}

const edit = (entries: unknown[], all?: unknown[]): unknown => ({
  entries: () => entries as [vscode.Uri, vscode.TextEdit[]][],
  ...(all ? { _allEntries: () => all } : {}),
});

test("every method of the protocol is answered by a command that only asks", async () => {
  const commands: string[] = [];
  const lent = servers((command) => {
    commands.push(command);
    return [{ name: "f" }];
  });
  const [item] = (await ask(lent, "textDocument/prepareCallHierarchy")) as unknown[];
  for (const method of LENT_METHODS) {
    const params = { ...PLACE, range: RANGE, options: {}, newName: "n", query: "q", item };
    await lent.answer({ uri: URI, method, params } as unknown as Question);
  }
  assert.equal(commands.length, LENT_METHODS.length, "all but codeAction/resolve, and the first");
  for (const command of commands) assert.match(command, /^vscode\.(execute\w+Provider|prepare\w+|provide\w+)$/);
});

test("other methods are not answered, whatever they are called", async () => {
  const lent = servers(() => assert.fail("nothing is executed"));
  for (const method of ["workspace/executeCommand", "workspace/applyEdit", "toString", "__proto__", "", "constructor"]) {
    assert.equal(await ask(lent, method), undefined);
  }
});

test("links are locations, and what was not found is no answer", async () => {
  const link = { targetUri: URI, targetRange: "whole", targetSelectionRange: "name" };
  const lent = servers(() => [{ uri: URI, range: RANGE }, link, { targetUri: URI, targetRange: "whole" }]);
  assert.deepEqual(await ask(lent, "textDocument/definition"), [
    { uri: URI, range: RANGE },
    { uri: URI, range: "name" },
    { uri: URI, range: "whole" },
  ]);
  for (const nothing of [undefined, null, []]) assert.equal(await ask(servers(() => nothing), "textDocument/references"), undefined);
});

test("a text that changed meanwhile, and a file that cannot be loaded", async () => {
  let now = 1;
  const lent = servers(() => (now += 1) && [{ uri: URI }], () => now);
  assert.equal(await ask(lent, "textDocument/definition"), undefined);
  const question = { uri: "file:///elsewhere.ts", method: "textDocument/definition", params: PLACE };
  assert.equal(await lent.answer(question as unknown as Question), null);
});

test("a server that hangs or refuses, and params of another shape", async () => {
  const hanging = servers(() => new Promise(() => {}), () => 1, 20);
  assert.equal(await ask(hanging, "textDocument/hover"), undefined);
  const refusing = servers(() => Promise.reject(new Error("no")));
  assert.equal(await ask(refusing, "textDocument/rename"), undefined);
  for (const method of LENT_METHODS) {
    if (method === "textDocument/documentSymbol") continue; // has no params
    assert.equal(await ask(servers(() => [{}]), method, null), undefined, method);
  }
});

test("hovers become one", async () => {
  const contents = [{ value: "**a**" }, "b", { language: "ts", value: "let c" }];
  const lent = servers(() => [{ contents, range: RANGE }, { contents: [{ value: "" }] }]);
  const value = "**a**\n\nb\n\n```ts\nlet c\n```";
  assert.deepEqual(await ask(lent, "textDocument/hover"), { contents: { kind: "markdown", value }, range: RANGE });
  assert.equal(await ask(servers(() => [{ contents: [{ value: "" }] }]), "textDocument/hover"), undefined);
});

test("symbols of both kinds", async () => {
  const child = { name: "m", kind: 5, detail: "", range: RANGE, selectionRange: RANGE, children: [] };
  const lent = servers(() => [{ ...child, name: "C", kind: 4, children: [child] }, { name: "f", kind: 11, containerName: "C", location: 1 }]);
  const places = { detail: "", range: RANGE, selectionRange: RANGE };
  assert.deepEqual(await ask(lent, "textDocument/documentSymbol"), [
    { name: "C", kind: 5, ...places, children: [{ name: "m", kind: 6, ...places, children: [] }] },
    { name: "f", kind: 12, containerName: "C", location: 1 },
  ]);
});

test("edits with and without files; none where a part cannot be written", async () => {
  const rename = (made: unknown): Promise<unknown> => ask(servers(() => made), "textDocument/rename", { ...PLACE, newName: "n" });
  const texts = [[URI, ["t"]]];
  assert.deepEqual(await rename(edit(texts)), { changes: { [URI]: ["t"] } });
  const files = [{ _type: 1, to: "new" }, { _type: 1, from: "old", to: "new" }, { _type: 1, from: "old" }, { _type: 2 }];
  assert.deepEqual(await rename(edit(texts, files)), {
    documentChanges: [
      { kind: "create", uri: "new" },
      { kind: "rename", oldUri: "old", newUri: "new" },
      { kind: "delete", uri: "old" },
      { textDocument: { uri: URI, version: null }, edits: ["t"] },
    ],
  });
  assert.equal(await rename(edit(texts, [{ _type: 2 }, { _type: 6 }])), undefined, "a snippet");
  assert.equal(await rename(edit([])), undefined);
});

test("code actions are edits: no command, and none of our own", async () => {
  const made = edit([[URI, ["t"]]]);
  const command = { command: "x", title: "x" };
  const lent = servers((_command, ...given) => {
    assert.deepEqual(given.slice(1), [RANGE, "quickfix", 20]);
    return [
      { title: "both", kind: { value: "quickfix" }, isPreferred: true, edit: made, command },
      { title: "only a command", command },
      command,
      { title: "ours", kind: { value: "quickfix.codeagent" }, edit: made },
      { title: "nothing", edit: edit([]) },
    ];
  });
  const found = await ask(lent, "textDocument/codeAction", { range: RANGE, context: { only: ["quickfix"] } });
  const changes = { changes: { [URI]: ["t"] } };
  assert.deepEqual(JSON.parse(JSON.stringify(found)), [{ title: "both", kind: "quickfix", isPreferred: true, edit: changes }]);
  const [action] = found as unknown[];
  assert.equal(await ask(lent, "codeAction/resolve", action), action);
  assert.equal(await ask(lent, "codeAction/resolve", { title: "t", data: 1 }), undefined);
});

test("items of hierarchies survive the way to the server and back, the last 300 of them", async () => {
  const root = { name: "root" };
  const given: unknown[] = [];
  const lent = servers((command, item) => {
    if (command === "vscode.prepareCallHierarchy") return [root];
    given.push(item);
    return [{ from: { name: "caller" }, fromRanges: [RANGE] }];
  });
  const [item] = (await ask(lent, "textDocument/prepareCallHierarchy")) as { data: unknown }[];
  const overTheWire = JSON.parse(JSON.stringify(item)) as unknown;
  const [call] = (await ask(lent, "callHierarchy/incomingCalls", { item: overTheWire })) as { from: { name: string } }[];
  assert.equal(call?.from.name, "caller");
  await ask(lent, "callHierarchy/incomingCalls", { item: call?.from });
  assert.equal(given[0], root, "the very object, by which VS Code knows it");
  for (let number = 0; number < 300; number += 1) await ask(lent, "textDocument/prepareCallHierarchy");
  assert.equal(await ask(lent, "callHierarchy/incomingCalls", { item: overTheWire }), undefined);
  for (const wrong of [undefined, {}, { data: 1 }, { data: { codeagent: "1" } }, { data: { codeagent: -1 } }]) {
    assert.equal(await ask(lent, "callHierarchy/outgoingCalls", { item: wrong }), undefined);
  }
});

test("signature help", async () => {
  const signature = { label: "f(a)", documentation: { value: "md" }, parameters: [{ label: "a", documentation: "plain" }] };
  const lent = servers(() => ({ signatures: [signature], activeSignature: 0, activeParameter: 0 }));
  const documentation = { kind: "markdown", value: "md" };
  assert.deepEqual(JSON.parse(JSON.stringify(await ask(lent, "textDocument/signatureHelp"))), {
    signatures: [{ ...signature, documentation }],
    activeSignature: 0,
    activeParameter: 0,
  });
  assert.equal(await ask(servers(() => ({ signatures: [] })), "textDocument/signatureHelp"), undefined);
});
