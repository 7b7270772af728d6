"""The place of a name shows what it is: a member, a word of another language, or what a macro makes of it.

Each case is a path, a name, and a text in which `«»` marks what must change. Without a mark, what the name means there
is not shown, and the rename is left to the model.
"""

from __future__ import annotations

import pytest

from tests.direct.renames import cases, lines_after, plain, wanted

MEMBERS = r"""
a.rs Out
struct «Out»;
fn f<I: Iterator<Out = i32>>(x: impl Fn() -> «Out») {}
----
a.go Box
package a
type K int
const (
	«Box» K = iota
	Bag
)
var names = [...]string{
	«Box»: "b",
	Bag: "g",
}
----
a.go Box
package a
type K int
const (
	«Box» K = iota
	Bag
)
var names = map[K]string{
	«Box»: "b",
	Bag: "g",
}
----
a.cpp size
struct Q;
int «size»() { return 1; }
struct W { Q q; int size; W() : size(1) {} };
int g() { return «size»(); }
----
a.go Box
package a
const «Box» = 1
type S struct{ Box int }
var m = S{Box: «Box»}
var n = []S{{Box: 1}}
var o = map[int]map[int]S{«Box»: {«Box»: {Box: 2}}}
----
A.cs Size
class A {
  static int Size() => 1;
  object F(X x) => new X { Size = Size() };
}
----
A.cs Size
class A {
  static int Size() => 1;
  object F(X x) => x with { Size = Size() };
}
----
A.cs Size
class A {
  static int Size() => 1;
  object F(X x) => new { Size = Size() };
}
----
A.cs Size
class A {
  static int Size() => 1;
  object F(X x) => x is X { Size: 1 };
}
----
A.cs Size
class A {
  static int Size() => 1;
  object F(X x) => x switch { { Size: 1 } => Size(), _ => 2 };
}
----
A.cs Size
class A {
  static int Size = 1;
  object F(X x) => new { Size };
}
----
A.cs A.Size
class A {
  int Size() => 1;
  object F(X x) => x?.Size();
}
----
A.cs Size
class A {
  static int Size() => 1;
  object F(X x) => x is X { Size.Length: 1 };
}
----
A.cs Size
class A {
  static int Size() => 1;
  (int Size, int b) F() => (Size: 1, b: Size());
}
----
a.cpp Box
struct Box { Box(int); };
struct D : Box { D() : Box(1) {} };
----
a.rb size
def size
  1
end
f(size:)
----
a.rs size
pub fn size() {}
fn f() { let v = vec![P { size: 1 }]; }
----
a.go Box
package a
const Box = 1
type M map[int]string
var m = M{Box: "a"}
var n = q.M{Box: 1}
----
a.go Box
package a
type Box struct{}
type S struct{ Box }
var s = S{Box: Box{}}
----
A.java A.SIZE
class A {
  static final int SIZE = 1;
  int f(E e) { switch (e) { case SIZE: return 1; default: return SIZE; } }
}
"""
QUALIFIED = r"""
a.tsx Node
type Node = 1;
function f(p: { c: React.Node }): Node { return 1; }
----
a.ts Box
class Box {}
let c: Array<Q.R.Box>;
----
a.ts Box
class Box {}
namespace N { export class Box {} }
let c: N.Box;
----
A.java Box
class Box {}
class A { x.y.Box b; java.util.Map.Box d; Object o = new q.Box(); }
----
a.php Box
<?php
class Box {}
new Q\Box; Q\Box::x(); function f(?Q\Box $a) {}
----
a.php Box
<?php
namespace A;
class Box {}
function f(\Box $a, B\Box $b, Box $c) {}
----
a.php size
<?php
function size() {}
echo \N\size();
----
A.cs Box
class Box {}
class C { N.Box b; global::N.Box c; Box d; }
----
A.java Box
class Box {}
class A { boolean f(Object o) { return o instanceof Box b; } java.util.List<q.Box> l; }
----
a.cpp Box
class Box {};
using Q = n::Box; n::Box b; std::vector<n::Box> c;
----
a.ts Box
class Box {}
import Box2 = N.Box;
let c: typeof N.Box;
----
a.tsx Title
function Title() {}
const a = <Title/>, b = <Title.Sub/>, c = <X.Title/>;
"""
TYPES = r"""
A.cs Box
class «Box» {}
class C {
  public «Box» Box { get; set; }
}
----
A.cs Box
class «Box» {}
class C {
  List<«Box»> all;
  «Box» f(«Box» Box) { return Box; }
  int Box;
}
----
A.java Box
class «Box» {}
class C { «Box» Box; }
----
A.java Box
class «Box» {}
class C { «Box» f(«Box» Box) { return Box; } }
----
a.ts Box
interface «Box» {}
function f(Box: «Box»): «Box» { return Box; }
----
A.cs Box
class Box { public static int N; }
class C {
  public Box Box { get; set; }
  int F() => Box.N;
}
----
A.cs Box
class Box {}
class C { object F() => typeof(Box); Box[] a; Box? b; List<Box> c = new List<Box>(); int Box;
  bool G(object o) => o is Box && o as Box != null; }
----
A.java Box
class Box { static int n; }
class C { Box Box; int f() { return Box.n; } }
"""
WORDS = r"""
a.tsx title
const «title» = 'x';
export const H = () => <head><title>{«title»}</title></head>;
----
a.jsx label
function «label»() {}
export const F = () => <label htmlFor='a'>{«label»()}</label>;
----
a.jsx size
const «size» = 1;
const x = <a:size size={«size»} />;
----
a.c size
int «size»(void) { return 1; }
void f(void) { __asm__("%[size]" : : [size] "r"(1)); }
----
A.cs Size
class A {
  static int «Size»() => 1;
  void F() { goto Size; Size: ; }
}
----
A.java A.size
class A {
  int «size»() { return 1; }
  @Ann(size = 3) int f() { return «size»(); }
}
----
A.java A.size
class A {
  int «size» = 1;
  void f() { size: for (;;) { break size; } }
}
----
a.php size
<?php
function «size»() {}
goto size;
size: «size»();
----
a.php size
<?php
function «size»() {}
#[Attr(size: 3)]
function g() { return f(size: «size»()); }
----
A.cs Size
class A {
  static int Size() => 1;
  [Attr(Size = 3)] int F() => Size();
}
----
a.rs size
pub fn size() {}
#[arg(long, size = 3)]
struct T;
----
a.rs size
pub fn size() {}
#[cfg(size)]
fn f() {}
----
a.cpp size
int size() { return 1; }
[[size]] int g();
[[n::size(1)]] int h();
----
a.c size
int size(void) { return 1; }
struct q s = { .size = 1 };
int g(void) { goto size; size: return size(); }
----
a.c size
int size(void) { return 1; }
#ifdef size
#endif
#if defined(size)
#endif
----
a.c size
int size(void) { return 1; }
int q __attribute__((cleanup(size)));
----
a.js size
function size() {}
size: for (;;) { break size; }
----
a.go size
package a
func size() {}
func f() {
size:
	for {
		break size
	}
	size()
}
"""
MACROS = r"""
a.rs SIZE
pub const «SIZE»: i32 = 1;
fn f() { println!("{}", «SIZE»); assert_eq!(«SIZE», 1); }
----
a.c size
int size(void) { return 1; }
#define P(x) my_##x
int z(void) { return P(size)(); }
----
a.c size
int size(void) { return 1; }
#define S(x) #x
const char *s = S(size);
----
a.c size
int size(void) { return 1; }
DEFINE_FIELD(size, int);
int z = GET(q, size);
----
a.cpp size
int size() { return 1; }
TEST(size, works) { EXPECT_EQ(size(), 1); }
----
a.rs size
pub fn size() {}
fn f() { html!(<div size=3>{ x }</div>); query!(size = 3); }
----
a.c size
int size(void) { return 1; }
int f(void) { return offsetof(struct q, size) + container_of(p, struct q, size)->x; }
----
a.c size
int size(void) { return 1; }
#define P(x) my_##x
int y(void) { return P(size()); }
----
a.rs size
pub fn size() {}
fn f() { assert!(v.iter().all(|size| size > 1)); }
----
a.rs size
macro_rules! m { ($x:ident) => { size() } }
pub fn size() {}
----
a.rs size
pub fn size() {}
fn f() { info!(size, "x"); }
----
a.rs size
pub fn size() {}
fn f() { assert!(matches!(x, Some(size) if size > 1)); }
----
a.c size
int size(void) { return 1; }
#define G(f) ((q)->f)
int y(void) { return G(size); }
----
a.c size
int «size»(void) { return 1; }
#define G(f) ((f) + 1)
int y(void) { return G(«size»()) + ASSERT(«size»() == 1) + run(«size»); }
"""
STRINGS = r"""
a.rb size
def size
  1
end
if /(?<size>a)/ =~ x
  p size
end
----
a.rs SIZE
pub const SIZE: i32 = 1;
fn f() { println!("{SIZE} {SIZE:?}"); }
----
a.rs size
pub fn size() {}
#[serde(default = "size")]
struct T { x: i32 }
----
a.py Box
class Box:
    def f(self, o: 'Box') -> "list[Box]": ...
"""


@pytest.mark.parametrize(("path", "old", "marked"), cases(MEMBERS))
def test_members_of_others_are_no_uses_and_keys_of_maps_are(path: str, old: str, marked: str) -> None:
    assert lines_after(path, plain(marked), old, "Extent") == wanted(marked, old, "Extent")


@pytest.mark.parametrize(("path", "old", "marked"), cases(QUALIFIED))
def test_a_name_behind_a_qualifier_is_that_of_another_module(path: str, old: str, marked: str) -> None:
    assert lines_after(path, plain(marked), old, "Extent") == wanted(marked, old, "Extent")


@pytest.mark.parametrize(("path", "old", "marked"), cases(TYPES))
def test_a_type_and_a_member_or_a_parameter_of_its_name_are_told_apart(path: str, old: str, marked: str) -> None:
    assert lines_after(path, plain(marked), old, "Extent") == wanted(marked, old, "Extent")


@pytest.mark.parametrize(("path", "old", "marked"), cases(WORDS))
def test_words_of_attributes_elements_and_labels_are_no_uses(path: str, old: str, marked: str) -> None:
    assert lines_after(path, plain(marked), old, "Extent") == wanted(marked, old, "Extent")


@pytest.mark.parametrize(("path", "old", "marked"), cases(MACROS))
def test_what_a_macro_makes_of_its_arguments_is_not_shown(path: str, old: str, marked: str) -> None:
    assert lines_after(path, plain(marked), old, "Extent") == wanted(marked, old, "Extent")


@pytest.mark.parametrize(("path", "old", "marked"), cases(STRINGS))
def test_strings_that_a_language_reads_as_code_are_not_passed_over(path: str, old: str, marked: str) -> None:
    assert lines_after(path, plain(marked), old, "Extent") == wanted(marked, old, "Extent")
