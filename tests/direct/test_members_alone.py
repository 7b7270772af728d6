"""A member given without its type takes the place of the one in the type, and nothing else: constructors with the name
of their class, properties, private names, methods that only a class can have.
"""

from __future__ import annotations

import re
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
        "    operator bool() const {\n        return w_ == 41;\n    }\n",
        "    explicit operator std::string() const {\n        return s(41);\n    }\n",
        "    int operator()(int a) {\n        return 41;\n    }\n",
        "    int operator[](int i) const {\n        return 41;\n    }\n",
        "    template <typename T>\n    T get(T t) && noexcept {\n        return t + 41;\n    }\n",
    ),
    "A.cs": (
        "namespace N;\n\npublic partial class Box : B\n{\n{0}}\n",
        "    public Box(int x) : base(x)\n    {\n        _x = 41;\n    }\n",
        "    public int Size\n    {\n        get { return 41; }\n        set { _s = value; }\n    }\n",
        "    public int Expr => 41;\n",
        "    public override async Task<int> F(Token t = default)\n    {\n        return 41;\n    }\n",
        "    public static Box operator +(Box a, Box b)\n    {\n        return new Box(41);\n    }\n",
        "    public static bool operator ==(Box a, Box b) => a.x == 41;\n",
        "    public static implicit operator int(Box b)\n    {\n        return 41;\n    }\n",
        "    public static explicit operator List<int>(Box b) => S(41);\n",
        "    public int this[int i]\n    {\n        get { return 41; }\n        set { f(value); }\n    }\n",
        "    public string this[string k] => S(41);\n",
        "    ~Box()\n    {\n        F(41);\n    }\n",
        "    static Box()\n    {\n        F(41);\n    }\n",
        "    int I.Explicit(int x)\n    {\n        return 41;\n    }\n",
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
        "  *[Symbol.iterator](): Iterator<T> {\n    yield f(41);\n  }\n",
        "  [Symbol.dispose](): void {\n    f(41);\n  }\n",
        "  get [Symbol.toStringTag](): string {\n    return f(41);\n  }\n",
        "  'a-b'(): number {\n    return 41;\n  }\n",
        "  protected arrow = async (x: number): Promise<number> => {\n    return 41;\n  };\n",
    ),
    "a.js": (
        "class Box extends B {\n{0}}\n",
        "  constructor(a) {\n    super(41);\n  }\n",
        "  static #own(x) {\n    f(41);\n  }\n",
        "  [Symbol.iterator]() {\n    return f(41);\n  }\n",
        "  async *[Symbol.asyncIterator]() {\n    yield 41;\n  }\n",
        "  get [Symbol.toStringTag]() {\n    return f(41);\n  }\n",
        "  get() {\n    return 41;\n  }\n",
        "  arrow = (x) => {\n    return 41;\n  };\n",
    ),
}


@pytest.mark.slow
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


CONSTANTS = {
    "a.rs": ("impl Box {\n    const C: i32 = 41;\n\n    fn f() {}\n}\n", "const C: i32 = 53;\n"),
    "a.rb": ("class Box\n  C = 41\n\n  def f\n  end\nend\n", "C = 53\n"),
    "a.php": ("<?php\nclass Box\n{\n    const C = 41;\n}\n", "const C = 53;\n"),
    "a.py": ("class Box:\n    C = 41\n\n    def f(self):\n        return 1\n", "C = 53\n"),
}


@pytest.mark.parametrize(("path", "given"), CONSTANTS.items())
def test_a_constant_of_a_type_is_not_made_anew_beside_it(path: str, given: tuple[str, str]) -> None:
    text, code = given
    answer = read_answer(f"{path}\n````\n{code}````\n", Files({path: text}), "function")
    assert not answer.texts and "Box" in answer.problem, answer


VALUES = {
    "a.ts": (
        "export class Box extends B {\n{0}}\n",
        "  static {\n    f(41);\n  }\n",
        "  size: number = 41;\n",
        "  big = 41;\n",
        "  static most = 41;\n",
        "  private readonly least: number = 41;\n",
        "  #own = 41;\n",
        "  late!: T41;\n",
        "  @Input() given = 41;\n",
        "  opts = {\n    a: 41,\n    b: `\n  kept 41\n`,\n  };\n",
    ),
    "b.ts": ("export interface Box {\n{0}}\n", "  size: T41;\n", "  opt?: T41;\n"),
    "a.js": (
        "class Box extends B {\n{0}}\n",
        "  static {\n    f(41);\n  }\n",
        "  size = 41;\n",
        "  static most = 41;\n",
        "  #own = 41;\n",
        "  opts = {\n    a: 41,\n  };\n",
    ),
    "A.java": (
        "class Box {\n{0}}\n",
        "    static {\n        f(41);\n    }\n",
        "    {\n        g(41);\n    }\n",
        "    private int size = 41;\n",
        "    static final int MOST = 41;\n",
        "    @Inject(41)\n    Foo foo;\n",
    ),
    "A.cs": ("class Box\n{\n{0}}\n", "    private int _size = 41;\n", "    const int Most = 41;\n"),
    "a.php": ("<?php\nclass Box\n{\n{0}}\n", "    private int $size = 41;\n", "    public static $all = [41];\n"),
    "a.cpp": ("class Box {\npublic:\n{0}};\n", "    int size = 41;\n", "    static constexpr int most = 41;\n"),
    "a.py": (
        "class Box(B):\n{0}",
        "    size = 41\n",
        "    most: int = 41\n",
        "    opts = {\n        'a': 41,\n    }\n",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("path", VALUES)
@pytest.mark.parametrize("indented", [True, False])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_field_or_an_initialiser_given_alone(path: str, indented: bool, ends: str) -> None:
    whole, *members = VALUES[path]
    text = whole.replace("{0}", "\n".join(members)).replace("\n", ends)
    for member in members:
        new = member.replace("41", "77")
        code = new if indented or "`" in new else textwrap.dedent(new)
        answer = read_answer(f"{path}\n```\n{code}```\n", Files({path: text}), "function")
        assert answer.texts == {path: text.replace(member.replace("\n", ends), new.replace("\n", ends), 1)}, (
            code,
            answer,
        )


UNCLEAR = (
    ("a.ts", "class A {\n  size = 1;\n}\nclass B {\n  size = 1;\n}\n", "size = 2;"),
    (
        "a.ts",
        "class A {\n  static {\n    f(1);\n  }\n}\nclass B {\n  static {\n    f(1);\n  }\n}\n",
        "static {\n  f(2);\n}",
    ),
    ("a.ts", "class A {\n  go() {\n    return 1;\n  }\n}\n", "static {\n  f(2);\n}"),
    (
        "a.js",
        "class A {\n  static {\n    f(1);\n  }\n\n  go() {\n    return 1;\n  }\n}\n",
        "static {\n  f(2);\n}\n\ngo() {\n  return 2;\n}",
    ),
    ("a.js", "let size = 1;\nclass A {\n  size = 1;\n}\n", "size = 2;"),
    ("a.js", "class A {\n  size = 1;\n}\n", "size = 2;\nnew A().go(size);"),
    ("a.js", "class A {\n  go() {\n    return 1;\n  }\n}\n", "size = 2;"),
    ("a.py", "class A:\n    size = 1\n", "size = 2\nprint(size)"),
    ("a.py", "def go():\n    size = 1\n    return size\n", "size = 2"),
    ("A.java", "class A {\n    int a = 1, b = 1;\n}\n", "int a = 2, b = 2;"),
    (
        "A.java",
        "class A {\n    static {\n        f(1);\n    }\n    {\n        g(1);\n    }\n    {\n        h(1);\n    }\n}\n",
        "{\n    g(2);\n}",
    ),
)


@pytest.mark.parametrize(("path", "text", "code"), UNCLEAR)
def test_one_that_may_be_several_or_none_is_refused_and_told_what_to_send(path: str, text: str, code: str) -> None:
    answer = read_answer(f"{path}\n```\n{code}\n```\n", Files({path: text}), "function")
    assert not answer.texts
    assert "ive the" in answer.problem or "give" in answer.problem


def test_an_indented_field_is_the_one_inside() -> None:
    text = "size = 1\n\n\nclass A:\n    size = 1\n"
    answer = read_answer("a.py\n```\n    size = 2\n```\n", Files({"a.py": text}), "function")
    assert answer.texts == {"a.py": "size = 1\n\n\nclass A:\n    size = 2\n"}


def test_an_initialiser_as_it_is_may_stand_beside_a_method() -> None:
    text = "class A {\n  static {\n    f(1);\n  }\n\n  go() {\n    return 1;\n  }\n}\n"
    code = "static {\n  f(1);\n}\n\ngo() {\n  return 2;\n}"
    answer = read_answer(f"a.js\n```\n{code}\n```\n", Files({"a.js": text}), "function")
    assert answer.texts == {"a.js": text.replace("return 1", "return 2")}


def test_a_field_may_come_to_hold_a_function() -> None:
    answer = read_answer(
        "a.js\n```\nsize = () => 2;\n```\n", Files({"a.js": "class A {\n  size = 1;\n}\n"}), "function"
    )
    assert answer.texts == {"a.js": "class A {\n  size = () => 2;\n}\n"}


CART = (
    "const cart = {\n  items: [],\n\n  // Sum.\n  total(extra) {\n    return 1;\n  },\n\n  add: (a) => {\n"
    "    return 2;\n  },\n\n  async *walk() {\n    yield 3;\n  },\n\n  'a-b': function () {\n    return 4;\n  },\n};\n"
    "\nconst other = (total) => total;\n"
)
ENTRIES = (
    "  // Sum.\n  total(extra) {\n    return 1;\n  }",
    "  total(extra) {\n    return 1;\n  }",
    "  add: (a) => {\n    return 2;\n  }",
    "  async *walk() {\n    yield 3;\n  }",
)
"""Entries of it that a reply gives alone."""


@pytest.mark.parametrize("path", ["a.js", "a.ts", "a.tsx"])
@pytest.mark.parametrize("indented", [True, False])
@pytest.mark.parametrize("comma", [",", ""])
@pytest.mark.parametrize("code", ENTRIES)
def test_a_function_of_an_object_given_alone(code: str, comma: str, indented: bool, path: str) -> None:
    new = re.sub(r"(return|yield) \d", r"\1 9", code)
    given = f"{new}{comma}\n" if indented else textwrap.dedent(f"{new}{comma}\n")
    answer = read_answer(f"{path}\n```\n{given}```\n", Files({path: CART}), "function")
    assert answer.texts == {path: CART.replace(code, new)}, answer.problem


def test_entries_of_an_object_that_are_no_functions_are_not_dropped() -> None:
    code = "  items: [9],\n\n  total(extra) {\n    return 9;\n  },\n"
    answer = read_answer(f"a.js\n```\n{code}```\n", Files({"a.js": CART}), "function")
    assert answer.texts == {}
    assert answer.problem


@pytest.mark.parametrize(
    "above", ["", "  /** Sum. */\n", "  // Sum.\n", "  /**\n   * Sum.\n   * @param a more\n   */\n"]
)
@pytest.mark.parametrize("decorator", ["", "  @log()\n", "  @log() @cached\n", "  @log({ a: 1 })\n  @cached\n"])
def test_a_method_is_no_function_of_its_name_outside(decorator: str, above: str) -> None:
    method = f"{above}{decorator}  async total(a = 0): Promise<number> {{\n    return 1;\n  }}\n"
    now = (
        f"export class Cart {{\n  items: number[] = [];\n\n{method}\n  last() {{}}\n}}\n\n"
        "export const total = (cart: Cart) => cart.total(1);\n"
    )
    code = textwrap.dedent(method.replace("return 1", "return 2"))
    answer = read_answer(f"a.ts\n```\n{code}```\n", Files({"a.ts": now}), "function")
    assert answer.texts == {"a.ts": now.replace("return 1", "return 2")}, answer.problem
