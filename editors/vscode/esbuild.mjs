// Builds the extension, the script of its webview and, with --tests, the unit tests.
import { build } from "esbuild";
import { copyFileSync, readdirSync, rmSync } from "node:fs";

const production = process.argv.includes("--production");
const common = { bundle: true, minify: production, sourcemap: production ? false : "linked", logLevel: "warning" };

rmSync("dist", { recursive: true, force: true }); // what an earlier version has built is not packaged
await build({
  ...common,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode"],
});
await build({
  ...common,
  entryPoints: ["src/webview/main.ts"],
  outfile: "dist/chat.js",
  platform: "browser",
  target: "es2022",
  format: "iife",
});
for (const name of ["codicon.css", "codicon.ttf"]) copyFileSync(`node_modules/@vscode/codicons/dist/${name}`, `dist/${name}`);
if (process.argv.includes("--tests")) {
  const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
  await build({
    ...common,
    entryPoints: tests.map((name) => `test/${name}`),
    outdir: "dist-test",
    platform: "node",
    target: "node20",
    format: "cjs",
    outExtension: { ".js": ".cjs" },
    alias: { vscode: "./test/editor.ts" },
  });
}
