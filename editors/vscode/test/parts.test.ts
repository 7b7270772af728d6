import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { COMMANDS } from "../src/protocol";
import { allClosed, whileOpen } from "../src/boxes";
import { hunkAt, hunksByFile, sidesOf } from "../src/review/hunks";
import { pathOf } from "../src/review/paths";
import { InCode } from "../src/review/inCode";
import { ownTitle, shortTitle, titledRun } from "../src/review/titles";
import { verdictsOf } from "../src/review/verdicts";
import { CodeLens, Range as Lines } from "./editor";
import { discover, downloader, type Surroundings } from "../src/server/discover";
import { type Inspected, section } from "../src/server/settings";
import { type Range, shifted, type TextChange } from "../src/shifted";
import { givenBack } from "../src/webview/draft";
import { makeRenderer } from "../src/webview/markdown";
import { settled } from "../src/webview/stable";
import { unlinked } from "../src/words";

const ROOT = path.join(__dirname, "..");

test("a model's words make no link of a command", () => {
  assert.doesNotMatch(unlinked("Which? [Details](command:workbench.action.quit)"), /\]\(/);
  assert.equal(unlinked("plain words (and more)"), "plain words (and more)");
});

const CODE_WORDS = { copy: "Copy", insert: "Insert", apply: "Apply", terminal: "Terminal" };

// --- lenses

test("where changes of two runs stand in a file, each lens names its task", () => {
  const inCode = new InCode(
    () => false,
    () => verdictsOf(undefined),
    (runId) => `task ${runId}`,
  );
  const lens = (runId: string, line: number, verdict: string): CodeLens =>
    new CodeLens(new Lines(line), { title: "as the server has it", command: `codeagent.${verdict}`, arguments: [{ runId, hunks: [`a.py#${line}`] }] });
  const document = { uri: { toString: () => "file:///a.py", fsPath: "/a.py" } };
  const titles = (...found: CodeLens[]): (string | undefined)[] => inCode.lenses(document as never, found as never, false).map((each) => each.command?.title);
  assert.deepEqual(titles(lens("a", 1, "apply"), lens("a", 5, "discard")), ["$(check) Accept change", "$(close) Discard change"]);
  assert.deepEqual(titles(lens("a", 1, "apply"), lens("b", 5, "apply"), lens("b", 9, "apply")), [
    "$(check) Accept change (task a)",
    "$(check) Accept change (task b)",
    "$(check) Accept change (task b)",
    "$(check-all) Accept file (task b)",
    "$(discard) Discard file (task b)",
  ]);
  assert.equal(shortTitle({ title: "word ".repeat(20) } as never).length, 40);
});

test("a question that the chat shows is not asked again above the code", () => {
  const inCode = new InCode(
    () => false,
    () => verdictsOf(undefined),
    () => "",
  );
  const asked = new CodeLens(new Lines(0), { title: "Which name?", command: "codeagent.respond", arguments: [{ requestId: "r" }] });
  const document = { uri: { toString: () => "file:///a.py", fsPath: "/a.py" } };
  const shown = (inChat: boolean): number => inCode.lenses(document as never, [asked] as never, inChat).length;
  assert.deepEqual([shown(false), shown(true)], [1, 0]);
});

// --- hunks

const DIFF = `--- a/a.py
+++ b/a.py
@@ -1,4 +1,5 @@ a.py#1fc27b31
 def one():
-    return 1
+    return 10
+
 
 
@@ -40,3 +41,2 @@ a.py#e0000002
 def last():
-    return 99
 end
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+--- not a header
`;

test("hunks have the ids that the server gave them and placed in the proposed text", () => {
  const files = hunksByFile(DIFF);
  assert.deepEqual([...files.keys()], ["a.py", "new.py"]);
  assert.deepEqual(files.get("a.py")?.map((hunk) => [hunk.id, hunk.start, hunk.added, hunk.removed]), [
    ["1fc27b31", 1, 2, 1],
    ["e0000002", 41, 0, 1],
  ]);
  assert.equal(files.get("new.py")?.[0]?.preview, "--- not a header");
});

test("the hunk at a line is the one it is in, else the nearest", () => {
  const marked = hunksByFile(DIFF, ["a.py#e0000002", "b.py#1fc27b31"]).get("a.py") ?? [];
  assert.deepEqual(marked.map((hunk) => hunk.unneeded), [undefined, true]);
  const hunks = hunksByFile(DIFF).get("a.py") ?? [];
  assert.equal(hunkAt(hunks, 2)?.id, "1fc27b31");
  assert.equal(hunkAt(hunks, 35)?.id, "e0000002");
  assert.equal(hunkAt([], 1), undefined);
});

test("a last line without an end is no hunk of its own", () => {
  const files = hunksByFile("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n");
  assert.equal(files.get("x")?.length, 1);
});

// --- discovery

const around = (changes: Partial<Surroundings>, ...programs: string[]): Surroundings => ({
  setting: [], extensionFolder: "/ext", ownEnvironment: "/own", python: undefined, pathVariable: "/usr/bin:relative",
  windows: false, mayDownload: false, isProgram: (file) => programs.includes(file), ...changes,
});

test("both sides of a file are made again from a diff and its text", () => {
  const base = "one\ntwo\nthree\n";
  const diff = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n";
  assert.deepEqual(sidesOf(diff, "x.py", base), { base, text: "one\n2\n2b\nthree\n" });
  assert.equal(sidesOf(diff, "x.py", "one\nzwei\nthree\n"), undefined, "a text that has moved on does not fit");
  assert.equal(sidesOf(diff, "y.py", base), undefined);
});

test("lines after a line, new files and deleted files keep their two sides", () => {
  const inserted = "--- a/x.py\n+++ b/x.py\n@@ -2,0 +3 @@\n+between\n";
  assert.deepEqual(sidesOf(inserted, "x.py", "a\nb\nc\n")?.text, "a\nb\nbetween\nc\n");
  const made = "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n";
  assert.deepEqual(sidesOf(made, "n.py", ""), { base: null, text: "x = 1\ny = 2\n" });
  const gone = "--- a/g.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n";
  assert.deepEqual(sidesOf(gone, "g.py", "x = 1\n"), { base: "x = 1\n", text: null });
});

test("a name of a diff means one file, or none", () => {
  assert.equal(pathOf("b/a.py", ["/ws/b/a.py", "/ws/a.py"]), "/ws/b/a.py");
  assert.equal(pathOf("a.py", ["/ws/b/a.py", "/ws/a.py"]), undefined);
});

test("the setting comes first, then the bundled server, Python's folder, PATH, our own", () => {
  const all = ["/ext/bundled/bin/codeagent-lsp", "/py/bin/codeagent-lsp", "/usr/bin/codeagent-lsp", "/own/bin/codeagent-lsp"];
  const order = ["bundled", "python", "path", "own"];
  for (let index = 0; index < all.length; index++) {
    assert.equal(discover(around({ python: "/py/bin/python" }, ...all.slice(index)))?.source, order[index]);
  }
  const chosen = discover(around({ setting: ["prog", "--flag"] }, ...all));
  assert.deepEqual(chosen, { command: "prog", args: ["--flag"], source: "setting" });
});

test("a relative folder on PATH is not looked into", () => {
  assert.equal(discover(around({}, "relative/codeagent-lsp")), undefined);
});

test("a download needs consent, and uvx comes before pipx", () => {
  const programs = ["/usr/bin/uvx", "/usr/bin/pipx"];
  assert.equal(discover(around({}, ...programs)), undefined);
  assert.equal(discover(around({ mayDownload: true }, ...programs))?.source, "uvx");
  assert.deepEqual(downloader(around({}, "/usr/bin/pipx"))?.args, ["run", "codeagent-lsp"]);
});

// --- reviews

test("tabs of reviews are told apart, also those of one title or of one that begins with another", () => {
  const titles = new Map([["a", "Changes: fix"], ["b", "Changes: fix all"]]);
  titles.set("c", ownTitle("Changes: fix", "c", titles));
  const runs = ["fix (1 file)", "fix all (2 files)", "fix (2) (1 file)", "other"].map((name) => titledRun(`Changes: ${name}`, titles));
  assert.deepEqual(runs, ["a", "b", "c", undefined]);
  assert.equal(ownTitle("Changes: fix", "a", titles), "Changes: fix", "opened again");
});

// --- what is typed meanwhile

/** A range or a change of a text as `line:character-line:character`. */
const range = (text: string): Range => {
  const [first = 0, second = 0, third = 0, fourth = 0] = text.split(/[:-]/).map(Number);
  return { start: { line: first, character: second }, end: { line: third, character: fourth } };
};
const change = (at: string, text: string): TextChange => ({ range: range(at), text });
const moves = (at: string, by: TextChange, to: string): void => assert.deepEqual(shifted(range(at), by), range(to), `${at} by ${JSON.stringify(by)}`);

test("a range moves with its text", () => {
  moves("2:0-4:3", change("0:0-0:0", "new\nlines\r\n"), "4:0-6:3");
  moves("2:0-4:3", change("0:0-1:0", ""), "1:0-3:3");
  moves("2:4-2:9", change("2:0-2:1", "abc"), "2:6-2:11");
  moves("2:4-3:9", change("1:5-2:2", "\n\nab"), "3:4-4:9");
  moves("2:0-4:3", change("4:5-6:0", "below\n"), "2:0-4:3");
});

test("what is typed at the ends of a range is outside of it", () => {
  moves("2:0-4:3", change("2:0-2:0", "above\n"), "3:0-5:3");
  moves("2:0-4:3", change("4:3-4:3", "\nbelow"), "2:0-4:3");
  moves("2:4-2:4", change("2:4-2:4", "ab"), "2:6-2:6");
});

test("what changes in a range, or overlaps it, belongs to it", () => {
  moves("2:0-4:3", change("3:0-3:1", "x\ny\n"), "2:0-6:3");
  moves("2:0-4:3", change("2:0-4:3", "one"), "2:0-2:3");
  moves("2:4-4:3", change("1:0-2:6", "ab"), "1:0-3:3");
  moves("2:0-4:3", change("4:1-5:0", "end"), "2:0-4:4");
  moves("2:0-4:3", change("1:0-6:0", ""), "1:0-1:0");
});

test("several changes at once come one after the other, the last of the text first", () => {
  const changes = [change("3:0-3:0", "c\n"), change("0:0-0:0", "a\nb\n")];
  assert.deepEqual(changes.reduce(shifted, range("2:0-4:3")), range("4:0-7:3"));
});

test("a question waits until every box is closed, whatever becomes of it", async () => {
  const seen: string[] = [];
  let close: (words: string) => void = () => undefined;
  const first = whileOpen(new Promise<string>((resolve) => (close = resolve)));
  const second = whileOpen(Promise.reject(new Error("gone"))).catch(() => seen.push("second"));
  const waiting = allClosed().then(() => seen.push("question"));
  await second;
  await new Promise(setImmediate);
  assert.deepEqual(seen, ["second"]);
  close("words");
  assert.equal(await first, "words");
  await waiting;
  await allClosed();
  assert.deepEqual(seen, ["second", "question"]);
});

test("what was not sent comes before what was written since", () => {
  assert.equal(givenBack("first", " "), "first");
  assert.equal(givenBack("first", "second"), "first\nsecond");
});

// --- settings

const setting = (key: string, changes: Partial<Inspected>): Inspected => ({
  key, restricted: false, global: undefined, workspace: undefined, effective: undefined, ...changes,
});

test("only what is set is sent, nested by the dots", () => {
  const given = [
    setting("model.name", { effective: "default" }),
    setting("agent.maxIterations", { global: 5, effective: 5 }),
    setting("agent.planning", { workspace: "always", effective: "always" }),
  ];
  assert.deepEqual(section(given, true), { agent: { maxIterations: 5, planning: "always" } });
});

test("an untrusted workspace sets nothing restricted and leaves the agent read-only", () => {
  const given = [
    setting("model.baseUrl", { restricted: true, workspace: "http://evil", effective: "http://evil" }),
    setting("permissions.mode", { restricted: true, global: "bypass", workspace: "bypass", effective: "bypass" }),
    setting("model.name", { restricted: true, global: "mine", workspace: "theirs", effective: "theirs" }),
    setting("agent.maxIterations", { workspace: 3, effective: 3 }),
  ];
  const expected = { permissions: { mode: "readOnly" }, model: { name: "mine" }, agent: { maxIterations: 3 } };
  assert.deepEqual(section(given, false), expected);
});

// --- Markdown

/** Where the unsettled text begins. */
const end = (text: string, from = 0): number => [...settled(text, from)].at(-1) ?? from;

test("finished paragraphs are settled, the last one and open fences are not", () => {
  const text = "one\n\ntwo\n\n```\na\n\nb\n";
  assert.equal(text.slice(0, end(text)), "one\n\ntwo\n\n");
  const closed = `${text}\`\`\`\n\nthree\nfour`;
  assert.equal(closed.slice(end(closed)), "three\nfour");
});

test("a list with gaps stays in one piece", () => {
  const text = "intro\n\n- a\n\n- b\n\n  more\n\n";
  assert.equal(end(text), 0);
});

test("what is settled in steps is what is settled at once", () => {
  const text = "# a\n\nb *c*\n\n```py\nx\n```\n\n1. d\n2. e\n\nf\n\ng\n";
  let done = 0;
  for (let length = 0; length <= text.length; length++) done = end(text.slice(0, length), done);
  assert.equal(done, end(text));
});

test("long text settles in small parts between blocks, and a long block is one", () => {
  const text = "word word\n\n".repeat(100) + "```\n" + "x\n\n".repeat(500) + "```\n\nend\n";
  const ends = [...settled(text, 0, 50)];
  const parts = ends.map((at, index) => text.slice(ends[index - 1] ?? 0, at));
  assert.equal(parts.join("") + "end\n", text);
  assert.ok(parts.slice(0, -1).every((part) => part.length <= 66 && part.endsWith("\n\n")), parts.slice(0, -1).join("|"));
  assert.ok(parts.at(-1)?.includes("```\nx\n"));
});

test("long code is laid out in parts and copied as a whole", () => {
  const code = Array.from({ length: 1000 }, (_, number) => `line ${number} <b>`).join("\n") + "\n";
  const html = makeRenderer(CODE_WORDS)("```\n" + code + "```\n");
  const parts = [...html.matchAll(/<span class="lines">([^<]*)<\/span>/g)].map((match) => match[1] ?? "");
  assert.equal(parts.length, 5);
  assert.equal(parts.join(""), code.replaceAll("<", "&lt;").replaceAll(">", "&gt;"));
});

test("untrusted Markdown makes no element of its own", () => {
  const render = makeRenderer(CODE_WORDS);
  const html = render('<img src=x onerror=alert(1)> ![i](http://x/y.png) [a](javascript:alert(1)) [b](https://e.org/"x) `a.py:3`');
  assert.ok(!/<img|<script|href="j/i.test(html), html);
  assert.match(html, /data-url="https:\/\/e\.org/);
  assert.match(html, /data-file="a\.py" data-line="3"/);
  assert.match(render("```py\n<b>\n```"), /&lt;b&gt;/);
});

// --- files that must agree

const manifest = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8")) as {
  contributes: { commands: { command: string }[]; menus: Record<string, { command?: string }[]>; keybindings: { command: string; key: string }[] };
};
const words = (name: string): Record<string, string> => JSON.parse(readFileSync(path.join(ROOT, name), "utf8")) as Record<string, string>;

test("menus and keys name declared commands", () => {
  const declared = new Set(manifest.contributes.commands.map((item) => item.command));
  const used = [...Object.values(manifest.contributes.menus).flat(), ...manifest.contributes.keybindings];
  for (const { command } of used) {
    const known = command === undefined || declared.has(command) || command.startsWith("editor.");
    assert.ok(known, command);
  }
});

test("the README has every key", () => {
  const readme = readFileSync(path.join(ROOT, "README.md"), "utf8").toLowerCase();
  for (const { key } of manifest.contributes.keybindings) {
    const known = readme.includes(key) || (key.startsWith("ctrl+alt+shift+") && readme.includes("with shift"));
    assert.ok(known, key);
  }
});

test("declared commands are the server's or are registered here", () => {
  const own = readFileSync(path.join(ROOT, "src", "commands.ts"), "utf8");
  const server = new Set(COMMANDS.map((item) => item.name));
  for (const { command } of manifest.contributes.commands) {
    const known = server.has(command) || own.includes(`"${command}"`);
    assert.ok(known, command);
  }
});

test("both languages have the same words, and every one that is used", () => {
  const [english, chinese] = [words("package.nls.json"), words("package.nls.zh-cn.json")];
  assert.deepEqual(Object.keys(chinese).sort(), Object.keys(english).sort());
  const used = [...readFileSync(path.join(ROOT, "package.json"), "utf8").matchAll(/"%([^%]+)%"/g)].map((match) => match[1] ?? "");
  for (const key of used) assert.ok(key in english, key);
  for (const key of Object.keys(english)) assert.ok(used.includes(key), `${key} is not used`);
});

test("what is Chinese is in Chinese, but for names", () => {
  const names = ["CodeAgent", "CodeAgent：MCP"];
  for (const file of ["package.nls.zh-cn.json", "l10n/bundle.l10n.zh-cn.json"]) {
    for (const [key, text] of Object.entries(words(file))) assert.ok(names.includes(text) || /\p{Script=Han}/u.test(text), `${key}: ${text}`);
  }
});

test("every sentence of the code has a translation, and the other way round", () => {
  const sources = readdirSync(path.join(ROOT, "src"), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const found = new Set<string>();
  for (const name of sources) {
    const text = readFileSync(path.join(ROOT, "src", name), "utf8");
    for (const match of text.matchAll(/l10n\.t\(\s*"((?:[^"\\]|\\.)*)"/g)) found.add(match[1] ?? "");
  }
  const bundle = words("l10n/bundle.l10n.zh-cn.json");
  assert.deepEqual(Object.keys(bundle).sort(), [...found].sort());
  for (const [english, chinese] of Object.entries(bundle)) {
    assert.deepEqual(chinese.match(/\{\d\}/g)?.sort(), english.match(/\{\d\}/g)?.sort(), english);
  }
});

test("the settings a workspace must not set are declared so", () => {
  const text = readFileSync(path.join(ROOT, "package.json"), "utf8");
  const data = JSON.parse(text) as { capabilities: { untrustedWorkspaces: { supported: string; restrictedConfigurations: string[] } } };
  const { supported, restrictedConfigurations } = data.capabilities.untrustedWorkspaces;
  assert.equal(supported, "limited");
  for (const key of ["server.command", "model.baseUrl", "permissions.mode", "mcp.servers"]) {
    assert.ok(restrictedConfigurations.includes(`codeagent.${key}`), key);
  }
  assert.ok(!text.includes("codeagent.model.apiKey"), "a key is no setting");
});
