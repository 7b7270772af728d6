"""References by syntax: `«name»` marks what has to be found, in every language; nothing else may be."""

from __future__ import annotations

import re

import pytest

from codeagent_lsp.tools.code.meaning import Elsewhere, defined, elsewhere, references
from codeagent_lsp.tools.code.source import required

CASES: dict[str, tuple[str, str, str]] = {
    "python": (
        "a.py",
        "run",
        """
from m import «run»
def run(a=1): "run()"
def a():
    run = 3  # run
    return run
def b(run): return run()
def c():
    global «run»
    «run» = 3
    «run»()
def d():
    x = [run for run in y] + [«run» for z in y]
    «run»(run=1)
    o.«run»()
    def g(): return «run»
class K:
    run = 1
    z = run
    def m(self): «run»(); self.run
def e():
    def run(): ...
    return run()
def f(*run, **o): return run
def h():
    with open(x) as run: run
lambda run: run
for i in «run»(): print(f"{«run»} run")
""",
    ),
    "typescript": (
        "a.ts",
        "run",
        """
import { «run» } from './m';
export function run(a = «run») { return «run» }
function b({ run, z: q = run }: T) { run() }
const c = (run) => run();
const o = { «run», run: 1, x: «run», run() { «run»() } };
if (a) { const run = 3; run } else { var q = 1; «run»() }
for (const run of y) { run }
class A { run() { this.run(); «run»() } }
function e() { if (1) { var run = 2 } run() }
try { } catch (run) { run }
const s = `run ${«run»()} "run"`; // run
function g<T>(x: T, { a: [run] }: any) { return run }
export { «run» };
""",
    ),
    "javascript": (
        "a.mjs",
        "run",
        "function run() {}\nconst a = () => { let [run] = x; return run }\nb.«run»(); «run»(); /run/.test('run');\n"
        "(function run() { run() })();\nfunction c(...run) { run }\n",
    ),
    "tsx": (
        "a.tsx",
        "Box",
        "function Box() { return <i/> }\nconst a = <«Box» title='Box'>Box {Box2}</«Box»>;\n"
        "function b({ Box }) { return <Box/> }\n",
    ),
    "go": (
        "a.go",
        "run",
        """
package a
func run(a int) int {
	run := «run»(1)
	return run // run
}
func (s *S) m() { «run»(); x := T{run: «run»}; var run int = «run»(2); _ = run }
func f(run int) { run() }
func g() { for _, run := range x { run() }; «run»() ; a.«run»("run") }
func h() { if run := «run»(1); run > 0 { run++ }; «run»(2) }
func i() { func(run int) { run() }(1); switch run := y.(type) { case int: run } }
""",
    ),
    "rust": (
        "a.rs",
        "run",
        """
use crate::a::«run»;
fn run() { let run = «run»(); run; }
impl A { fn m(&self) { «run»(); A { run: 1 }; } }
fn g(run: i32) { run; match x { run => run, None => 1 }; if let Some(run) = y { run } }
fn h() { let f = |run| run; «run»!(); «run»::<i32>(); m::«run»("run"); /* run */ }
fn i() { for run in x { run } «run»() }
fn j() { fn run() {} run() }
""",
    ),
    "java": (
        "A.java",
        "A.run",
        """
class A {
    int run(int a) { int run = 1; return «run»(run) + this.«run»(run); }
    void b(int run) { «run»(run); Runnable r = () -> «run»(1); x.«run»("run"); /* run */ }
    void c() { for (int run : y) { «run»(run); } }
}
class B { void run() { run(); this.run(); } }
""",
    ),
    "c": (
        "a.c",
        "run",
        """
int run(int a) { return a ? «run»(a - 1) : sizeof("run"); }
int b(int run) { return run; }
int c(void) { int run = 1; return run; } // run
int d(void) { { int *run[3] = {0}; *run; } return «run»(2) + s.«run»; }
int (*e)(int) = «run»;
""",
    ),
    "cpp": (
        "a.cpp",
        "run",
        """
int run(int a);
int b(int& run) { return run; }
int c() { auto f = [](int run) { return run; }; return «run»(f(1)) + n::«run»(2); }
struct S { int run() { return run() + this->run(); } };
int d() { for (auto run : x) run; return «run»(R"(run)"); }
""",
    ),
    "csharp": (
        "A.cs",
        "A.Run",
        """
class A {
    int Run(int a) { return «Run»(a) + this.«Run»(a) + x.«Run»(1); }
    void B(int Run) { Console.Write(Run); }
    void C() { var Run = 1; Run++; Func<int, int> f = Run => Run; "Run".ToString(); /* Run */ }
    void D() { foreach (var Run in y) { Run.E(); } «Run»(2); }
}
class Z { void Run() { Run(); this.Run(); } }
""",
    ),
    "a class with a constructor": (
        "a.cpp",
        "Gamma",
        """
class Gamma {
 public:
  Gamma() {}
  ~«Gamma»();
  static «Gamma»* make() { return new «Gamma»(); }
};
«Gamma»::~«Gamma»() { «Gamma»* other; }
«Gamma»* b(int Gamma2) { return «Gamma»::make(); }
""",
    ),
    "a class with a constructor in Java": (
        "Gamma.java",
        "Gamma",
        "class Gamma {\n    Gamma() {}\n    «Gamma» copy() { return new «Gamma»(); }\n}\n",
    ),
    "ruby": (
        "a.rb",
        "run",
        """
def run(a = 1)
  «run»(2) # run
end
def b(run)
  run + 1
end
def c
  run = 1
  run + 1
  «run»(3)
  x.each { |run| run }
  y.«run»("run #{«run»(1)}")
end
class K
  def run; run; self.run; end
end
""",
    ),
    "php": (
        "a.php",
        "run",
        "<?php\nfunction run($run) { return $run . «run»(1) . 'run()'; }\n$run = 1; «run»($run); // run\n"
        "class A { function run() { $this->run(); self::run(); «run»(2); } }\n$x->«run»(); $f = fn($run) => $run;\n",
    ),
    "bash": ("a.sh", "run", "run() { echo run; }\n«run» 1 run\nx=$(«run»)\necho 'run' # run\nrun=1\n"),
    "a method": (
        "a.py",
        "A.run",
        """
class A:
    def run(self): self.«run»(); run()
    alias = «run»
class B(A):
    def go(self): self.«run»(); super().«run»()
class C:
    def run(self): self.run()
x.«run»(); A.«run»(x); run()
""",
    ),
    "a nested function": (
        "a.py",
        "outer.run",
        "def outer():\n    def run(): ...\n    «run»()\n    def inner(): return «run»\ndef other(): run()\nrun()\n",
    ),
    "nothing defines it": ("a.py", "run", "«run»()\nx.«run»\ndef a(run): run\n"),
    "not ASCII": ("a.py", "größe", "def größe(): ...\n'größe'\nprint('中文', «größe»())\ndef a(größe): größe\n"),
}


@pytest.mark.parametrize("case", CASES)
def test_exactly_the_marked_uses_are_found(case: str) -> None:
    path, symbol, marked = CASES[case]
    text = marked.replace("«", "").replace("»", "")
    source = required(path, text)
    meant = elsewhere([(source, each) for each in defined(source, symbol)])
    found = references(source, symbol, meant)
    assert [(site.line, site.column) for site in found.sites] == _places(marked)


@pytest.mark.parametrize("case", CASES)
def test_line_ends_change_nothing(case: str) -> None:
    path, symbol, marked = CASES[case]
    text = marked.replace("«", "").replace("»", "").replace("\n", "\r\n")
    source = required(path, text)
    meant = elsewhere([(source, each) for each in defined(source, symbol)])
    assert [(site.line, site.column) for site in references(source, symbol, meant).sites] == _places(marked)


def test_what_kind_of_use_it_is_and_where() -> None:
    text = "from m import run\nclass A:\n    def f(self):\n        run(x.run, run)\n"
    found = references(required("a.py", text), "run", Elsewhere())
    assert [(site.kind, site.within, site.text) for site in found.sites] == [
        ("import", "", "from m import run"),
        ("call", "A.f", "run(x.run, run)"),
        ("member", "A.f", "run(x.run, run)"),
        ("use", "A.f", "run(x.run, run)"),
    ]


def test_names_that_are_bound_here_are_counted() -> None:
    found = references(required("a.py", "def a(run):\n    run()\n    run\n"), "run", Elsewhere())
    assert (found.sites, found.left_out) == ((), 2)


def test_a_method_elsewhere_is_not_called_by_its_bare_name_where_that_takes_self() -> None:
    there = Elsewhere(frozenset({"A"}), members=True)
    assert not references(required("b.py", "run()\n"), "A.run", there).sites
    assert references(required("B.java", "class B extends A { int x() { return run(); } }\n"), "A.run", there).sites


def _places(marked: str) -> list[tuple[int, int]]:
    found = []
    for number, line in enumerate(marked.split("\n"), 1):
        for match in re.finditer("«", line):
            before = line[: match.start()].replace("«", "").replace("»", "")
            found.append((number, len(before) + 1))
    return found
