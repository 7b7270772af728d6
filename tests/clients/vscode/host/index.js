// Tests inside the extension host: what the installed extension is to other code there, which no click shows.
// The report goes to the file that CODEAGENT_HOST_REPORT names; `test_host.py` starts this and reads it.
"use strict";
const assert = require("node:assert/strict");
const { readdirSync, readFileSync, writeFileSync } = require("node:fs");
const vscode = require("vscode");

const ID = "codeagent-lsp.codeagent";
const MODULE = /^codeagent\./;
const { Global, Workspace, WorkspaceFolder } = vscode.ConfigurationTarget;

const extension = () => vscode.extensions.getExtension(ID);
const manifest = () => extension().packageJSON;
const call = (command, ...given) => vscode.commands.executeCommand(command, ...given);
const section = () => vscode.workspace.getConfiguration("codeagent");
const source = () => vscode.workspace.textDocuments.find((document) => document.fileName.endsWith("a.py"));

async function until(holds, what) {
  const end = Date.now() + 15_000;
  while (!(await holds())) {
    assert.ok(Date.now() < end, what);
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function openSource() {
  const uri = vscode.Uri.joinPath(vscode.workspace.workspaceFolders[0].uri, "a.py");
  return vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
}

const tests = {
  async "it is active after the start, without a file of a language"() {
    await until(() => extension()?.isActive, "not active");
  },

  async "every command of the manifest is registered, and every registered one declared or of the server"() {
    const registered = (await vscode.commands.getCommands(true)).filter((name) => MODULE.test(name));
    const declared = manifest().contributes.commands.map(({ command }) => command);
    assert.deepEqual(declared.filter((name) => !registered.includes(name)), []);
    assert.ok(registered.length > declared.length, "those of the server that need no words are there as well");
  },

  async "when clauses, menus and keys name only commands and keys that exist"() {
    const { commands, menus, keybindings } = manifest().contributes;
    const declared = new Set(commands.map(({ command }) => command));
    const entries = [...Object.values(menus).flat(), ...keybindings];
    for (const { command } of entries) {
      assert.ok(command === undefined || declared.has(command) || command.startsWith("editor."), command);
    }
    const known = /^codeagent\.(running|waiting|changes|changedHere|applied|reviewing|ready|chat)$/;
    const named = entries.flatMap(({ when }) => (when ?? "").match(/codeagent\.\w+/g) ?? []);
    for (const name of new Set(named)) assert.match(name, known);
  },

  async "commands have a category, a title in the user's language and an icon"() {
    for (const { command, title, category, icon } of manifest().contributes.commands) {
      assert.equal(category, "CodeAgent", command);
      assert.doesNotMatch(title, /^%/, command);
      assert.match(icon, /^\$\([\w-]+\)$/, command);
    }
  },

  async "settings keep to their scopes"() {
    await assert.rejects(section().update("server.install", "never", Workspace), /machine|user settings/i);
    await section().update("agent.planning", "never", WorkspaceFolder).then(
      () => assert.fail("a setting of the window was written for a folder"),
      (error) => assert.match(String(error), /folder|resource/i),
    );
    await section().update("agent.planning", "never", Workspace);
    assert.equal(section().get("agent.planning"), "never");
    await section().update("agent.planning", undefined, Workspace);
    assert.equal(section().get("agent.planning"), "auto");
  },

  async "every setting has a description and a default that its type allows"() {
    const types = { string: "string", boolean: "boolean", number: "number", integer: "number", object: "object" };
    for (const { properties } of manifest().contributes.configuration) {
      for (const [key, { type, default: value, markdownDescription }] of Object.entries(properties)) {
        assert.ok(markdownDescription?.length > 10, key);
        const kind = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
        const allowed = [type].flat().map((name) => types[name] ?? name);
        assert.ok(allowed.includes(kind), `${key}: ${kind} is not one of ${allowed}`);
        assert.doesNotMatch(key, /key$/i, "a secret has no setting");
      }
    }
  },

  async "untrusted and virtual workspaces are declared as limited and not possible"() {
    const { untrustedWorkspaces: untrusted, virtualWorkspaces: virtual } = manifest().capabilities;
    assert.equal(untrusted.supported, "limited");
    assert.equal(virtual.supported, false);
    for (const key of ["server.command", "model.baseUrl", "permissions.mode", "mcp.servers"]) {
      assert.ok(untrusted.restrictedConfigurations.includes(`codeagent.${key}`), key);
    }
  },

  async "the server offers code actions for a selection, with kinds, at once"() {
    const editor = await openSource();
    const range = new vscode.Range(0, 0, 1, 12);
    const ask = () => call("vscode.executeCodeActionProvider", editor.document.uri, range);
    await until(async () => (await ask()).some(({ kind }) => kind?.value.endsWith(".codeagent")), "no code actions");
    const began = Date.now();
    const mine = (await ask()).filter(({ kind }) => kind?.value.includes("codeagent"));
    assert.ok(mine.length >= 6, mine.map(({ title }) => title).join());
    assert.ok(Date.now() - began < 1000, `${Date.now() - began} ms`);
  },

  async "a run by command, accepted by command, is in the buffer and not on the disk"() {
    await openSource();
    await call("codeagent.run", { task: "Change the first function" });
    await until(waiting, "no question");
    await call("codeagent.apply", {});
    await until(() => source()?.getText().includes("return 10"), "not applied");
    assert.ok(source().isDirty);
    await call("workbench.action.closeQuickOpen");
    await call("codeagent.undo");
    await until(() => !source().getText().includes("return 10"), "not undone");
  },

  async "what the server refuses is told and not thrown at the caller"() {
    assert.equal(await call("codeagent.plan.retryStep", { runId: "none", stepId: "1" }), undefined);
    assert.equal(await call("codeagent.cancel", { runId: "none" }).then(() => 0, () => 1), 0);
  },

  async "the doctor shows a report that needs no saving"() {
    await call("codeagent.doctor");
    const label = () => vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs).map((tab) => tab.label).join();
    await until(() => /Doctor/.test(label()), `no report: ${label()}`);
    assert.ok(vscode.workspace.textDocuments.every(({ isUntitled }) => !isUntitled));
  },

  async "a restart by command leaves one server, and commands wait for it"() {
    const before = servers();
    assert.equal(before.length, 1);
    await call("codeagent.restart");
    assert.notEqual(await call("codeagent.tools.stats"), undefined);
    await until(() => servers().length === 1 && servers()[0] !== before[0], `${before} then ${servers()}`);
  },

  async "settings reach the server that runs"() {
    const [server] = servers();
    await section().update("edits.apply", "auto", Global);
    await call("codeagent.run", { task: "Change the first function" });
    await until(() => source().getText().includes("return 10"), "not applied by itself");
    await section().update("edits.apply", undefined, Global);
    assert.deepEqual(servers(), [server]);
  },
};

/** A question is open: the server offers its answers as lenses. */
async function waiting() {
  const lenses = (await call("vscode.executeCodeLensProvider", source().uri, 100)) ?? [];
  return lenses.some(({ command }) => /^Agent asks: .* · /.test(command?.title ?? "") || /^(Review|Apply|Discard)$/.test(command?.title ?? ""));
}

/** Process ids of the servers of this window. */
function servers() {
  const mine = `CODEAGENT_STATE_DIR=${process.env["CODEAGENT_STATE_DIR"]}`;
  return readdirSync("/proc").filter((name) => {
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8");
      return command.includes("codeagent_lsp.cli") && readFileSync(`/proc/${name}/environ`, "utf8").includes(mine);
    } catch {
      return false;
    }
  });
}

exports.run = async () => {
  const report = {};
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      report[name] = "";
    } catch (error) {
      report[name] = error?.stack ?? String(error);
    }
  }
  writeFileSync(process.env["CODEAGENT_HOST_REPORT"], JSON.stringify(report));
};
