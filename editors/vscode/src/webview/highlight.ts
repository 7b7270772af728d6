/** Colours code by highlight.js, whose spans have classes only, as the content policy wants. Not here: the colours. */
import highlighter from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import lua from "highlight.js/lib/languages/lua";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const LANGUAGES = {
  bash, c, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin, lua, markdown, php, python, ruby, rust, sql,
  swift, typescript, xml, yaml,
};
const ENDINGS: Readonly<Record<string, string>> = { h: "c", hpp: "cpp", cc: "cpp", toml: "ini", cfg: "ini", console: "bash", vue: "xml" };
const MOST = 30_000; // more would hold up the frame

for (const [name, grammar] of Object.entries(LANGUAGES)) highlighter.registerLanguage(name, grammar);

/** The code as HTML; undefined where its language is not known, or there is too much of it. */
export function highlighted(code: string, language: string): string | undefined {
  const named = ENDINGS[language.toLowerCase()] ?? language.toLowerCase();
  if (code.length > MOST || !named || !highlighter.getLanguage(named)) return undefined;
  return highlighter.highlight(code, { language: named, ignoreIllegals: true }).value;
}

/** The language of a file, by its name. */
export function languageOf(file: string): string {
  return /\.(\w+)$/.exec(file)?.[1] ?? "";
}
