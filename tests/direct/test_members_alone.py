"""A member given without its type takes the place of the one in the type, and nothing else: constructors with the name
of their class, properties, private names, methods that only a class can have.
"""

from __future__ import annotations

import textwrap

import pytest

from codeagent_lsp.direct.answer import Files, read_answer

TYPES = {
    "a.php": (
        "<?php\nnamespace N;\n\nabstract class Box extends B {\n{0}}\n",
        "    public function __construct(private int $a) {\n        $this->x = 41;\n    }\n",
        "    final protected static function make(): static {\n        return new static(41);\n    }\n",
        "    #[Attr('x')]\n    public function marked(): int {\n        return 41;\n    }\n",
        "    public function &ref(array &$x, int ...$y): array {\n        return f(41);\n    }\n",
    ),
    "a.cpp": (
        "#include <x>\n\nclass Box : public B {\npublic:\n{0}};\n",
        "    explicit Box(int w) : B(w), w_(41) {\n        init();\n    }\n",
        "    ~Box() {\n        f(41);\n    }\n",
        "    bool operator==(const Box& o) const {\n        return w_ == 41;\n    }\n",
        "    template <typename T>\n    T get(T t) && noexcept {\n        return t + 41;\n    }\n",
    ),
    "A.cs": (
        "namespace N;\n\npublic partial class Box : B\n{\n{0}}\n",
        "    public Box(int x) : base(x)\n    {\n        _x = 41;\n    }\n",
        "    public int Size\n    {\n        get { return 41; }\n        set { _s = value; }\n    }\n",
        "    public int Expr => 41;\n",
        "    public override async Task<int> F(Token t = default)\n    {\n        return 41;\n    }\n",
    ),
    "A.java": (
        "package a;\n\npublic class Box<T> extends B {\n{0}}\n",
        "    public Box(int x) {\n        super(41);\n    }\n",
        "    @Override\n    public <K extends T> K f(K k) throws E {\n        return g(41);\n    }\n",
    ),
    "a.ts": (
        "export class Box extends B {\n{0}}\n",
        "  constructor(private readonly a: B) {\n    super(41);\n  }\n",
        "  static #own(x?: number): void {\n    f(41);\n  }\n",
        "  protected arrow = async (x: number): Promise<number> => {\n    return 41;\n  };\n",
    ),
    "a.js": (
        "class Box extends B {\n{0}}\n",
        "  constructor(a) {\n    super(41);\n  }\n",
        "  static #own(x) {\n    f(41);\n  }\n",
        "  arrow = (x) => {\n    return 41;\n  };\n",
    ),
}


@pytest.mark.parametrize(("path", "around"), TYPES.items())
def test_a_member_given_alone(path: str, around: tuple[str, ...]) -> None:
    whole, *members = around
    text = whole.replace("{0}", "\n".join(members))
    for member in members:
        changed = member.replace("41", "53")
        for given in (changed, textwrap.dedent(changed)) if member is members[0] else (textwrap.dedent(changed),):
            answer = read_answer(f"{path}\n````\n{given}````\n", Files({path: text}), "function")
            assert answer.texts == {path: text.replace(member, changed)}, (member, answer.problem)


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        (
            "a.cpp",
            "class Box {\n  int w_;\n  int g() {\n    return w_;\n  }\n};\n",
            "explicit Box(int w) {\n  f();\n}\n",
        ),
        ("a.py", "class Box:\n    x = 1\n\n    def g(self):\n        return 1\n", "def Box(x):\n    return x\n"),
        ("a.js", "class Box {\n  g() {\n    return 1;\n  }\n}\n", "function Box() {\n  return 1;\n}\n"),
    ],
)
def test_a_function_takes_no_types_place(path: str, text: str, code: str) -> None:
    answer = read_answer(f"{path}\n````\n{code}````\n", Files({path: text}), "function")
    assert not answer.texts and "Box is a type" in answer.problem
