"""Texts that hold no call of a tool, though many talk about calls or look like them."""

from __future__ import annotations

FENCE = "```"


def block(language: str, source: str) -> str:
    return f"{FENCE}{language}\n{source}\n{FENCE}"


CALL = '{"name": "read_file", "arguments": {"path": "a.py"}}'
SHORT = '{"tool": "read_file", "args": {"path": "a.py"}}'

SPEECH = [
    "",
    " ",
    "Done.",
    "The function reads a file and returns its lines.",
    "I changed three files: a.py, b.py and c.py.",
    "Is x < y and y > z? Then `f(x) > f(z)` [see below].",
    "Use {braces} and [brackets] as you like; (parentheses) too.",
    "The array [1, 2, 3] has three items; the set {1, 2} has two.",
    "Open the menu [File] and choose {Save}.",
    "See [the manual](https://example.com/a?b={c}) and [1].",
    "- [ ] write the tests\n- [x] read the code\n- [ ] run them",
    "| a | b |\n|---|---|\n| {x} | [y] |",
    "1. Read the file.\n2. Write it.\n3. `read_file` again.",
    "> {quoted}\n> [text]",
    "It costs $5 -- \"cheap\", he said; 'very'.",
    "文件已读取。函数 `parse()` 返回列表 [1, 2]。",
    "请使用 {name} 占位符，然后调用 read_file。",
    "¿Qué hace {esto}? Añade [uno].",
    "Emoji 🎉 {🎉} [🎉] and zero\u200bwidth.",
    "a{b[c{d[e",
    "}}]]))",
    "Error: expected '}' but found '<tool' at line 3.",
    "The tag <think> is not special here.",
]

ABOUT_CALLS = [
    f"To read a file, a model writes `{SHORT}`.",
    f"The call `{CALL}` reads a.py.",
    f"A call looks like this:\n\n{block('json', CALL)}\n\nThe name comes first.",
    f"A call looks like this:\n\n{block('json', SHORT)}\n\nThen the result comes back.",
    f"Two examples:\n{block('json', SHORT)}\nand\n{block('json', CALL)}\nBoth are fine.",
    f"In Hermes style:\n{block('xml', '<tool_call>' + CALL + '</tool_call>')}\nThat is all.",
    f"Qwen writes\n{block('', '<function=read_file><parameter=path>a</parameter></function>')}\nwith XML.",
    "Write `<tool_call>` first, `</tool_call>` last.",
    "The mark `[TOOL_CALLS]` is Mistral's, `<|python_tag|>` is Llama's.",
    "Models such as Qwen begin a call with <tool_call> and end it with </tool_call>, as their template says.",
    "Mistral begins a call with [TOOL_CALLS] and a list.",
    f"If you wrote {SHORT} here, the file would be read.",
    f"For example, <tool_call>{CALL}</tool_call> would read it.",
    "The tools are read_file(path), write_file(path, content) and list_dir(path).",
    "First I would call read_file(path='a.py'), then write_file(path='a.py', content='x').",
    'The parameter {"path": "a.py"} names the file.',
    "An OpenAI reply has tool_calls: [{id, function: {name, arguments}}].",
    f'You asked: "what does {SHORT} mean?" It asks for a file.',
    "> <tool_call>\n\nis how the quoted template begins, I think.",
    f"~~~json\n{SHORT}\n~~~\nis the same with tildes.",
    f"````markdown\n{block('json', SHORT)}\n````\nshows a fence within a fence.",
    f"Please don't send\n{block('json', SHORT)}\nagain.",
]

DATA = [
    '{"name": "demo", "version": "1.0.0", "scripts": {"test": "pytest"}}',
    '[{"name": "a", "value": 1}, {"name": "b", "value": 2}]',
    '{"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}',
    block("json", '{"name": "demo", "arguments": {"x": 1}}'),
    block("json", '{"tool": {"ruff": {"line-length": 120}}}'),
    block("json", '{"name": "read_file", "description": "Read a file.", "parameters": {"type": "object"}}'),
    block("json", '{"compilerOptions": {"strict": true}, "include": ["src"]}'),
    block("jsonc", '// settings\n{"editor.tabSize": 2,}'),
    block("toml", "[tool.ruff]\nline-length = 120\n\n[tool.mypy]\nstrict = true"),
    block("yaml", "name: read_file\narguments:\n  path: a.py"),
    block("ini", "[section]\nname = read_file"),
    block("xml", '<project name="demo"><function name="x"/></project>'),
    block("csv", "name,arguments\nread_file,a.py"),
]

CODE = [
    block("python", "read_file(path='a.py')"),
    block("python", "call = {'name': 'read_file', 'arguments': {'path': 'a.py'}}"),
    block("py", f"CALL = '''{SHORT}'''"),
    block("js", "const call = {name: 'read_file', arguments: {path: 'a.py'}};"),
    block("ts", "type Call = { name: string; arguments: Record<string, unknown> };"),
    block("go", 'm := map[string]any{"name": "read_file"}'),
    block("rust", 'let v = json!({"name": "read_file", "arguments": {"path": "a.py"}});'),
    block("c", "int a[] = {1, 2};\nif (a[0] < 2) { return a[1]; }"),
    block("cpp", "std::vector<int> v{1, 2}; auto f = [&](int x) { return v[x]; };"),
    block("java", 'List<String> list = new ArrayList<>() {{ add("a"); }};'),
    block("html", '<function name="x">y</function>'),
    block("sql", "SELECT name, arguments FROM calls WHERE name = 'read_file';"),
    block("sh", "curl -d '" + CALL + "' http://127.0.0.1:8080/v1"),
    block("bash", "if [[ -f a.py ]]; then read_file a.py; fi"),
    block("diff", '-{"name": "a"}\n+{"name": "read_file"}'),
    block("text", SHORT),
    "def read_file(path):\n    return open(path).read()",
    "$ echo '{\"a\": [1]}' | jq .a",
    "for (const [k, v] of Object.entries({a: 1})) { console.log(k, v); }",
    "print('hello')",
    "x = [f(1), g(2)]",
]

PROSE = [*SPEECH, *ABOUT_CALLS, *DATA, *CODE]
