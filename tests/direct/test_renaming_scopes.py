"""A rename by machine changes no use of a name that is declared again, is inherited, or is of another object.

Each case is a path, a name, and a text in which `«»` marks what must change. Without a mark, what the name means there
is not shown, and the rename is left to the model.
"""

from __future__ import annotations

import pytest

from tests.direct.renames import cases, lines_after, plain, wanted

SCOPES = r"""
a.ts size
const «size» = 1;
interface I { [size: string]: number }
----
A.cs A.Size
class A {
  static int «Size»() => 1;
  class B(int Size) { int F() => Size; }
}
----
A.cs A.Size
class A {
  static int «Size»() => 1;
  delegate void D(int Size);
  int F() => «Size»();
}
----
A.cs A.Size
class A {
  static int «Size»() => 1;
  public static A operator +(A a, int Size) => f(Size);
}
----
A.cs A.Size
class A {
  static int «Size»() => 1;
  void F(object o) { if (o is int Size && Size > 1) {} }
}
----
A.cs A.Size
class A {
  static int «Size»() => 1;
  void F(object o) { G(out var Size); H(Size); }
}
----
A.java A.size
class A {
  int «size» = 1;
  record R(int size) { int f() { return size; } }
}
----
a.cpp size
int «size»() { return 1; }
template <class T> class A { int g(int size); int h() { return «size»(); } };
----
a.cpp size
int «size»() { return 1; }
int f(int (*cb)(int size)) { return «size»(); }
----
a.c size
int «size»(void) { return 1; }
int f(int (*cb)(int size)) { int g(int size); return «size»(); }
----
a.cpp size
int «size»() { return 1; }
void f() { auto [size, b] = h(); g(size); }
----
a.cpp size
int «size»() { return 1; }
void f() { try {} catch (E& size) { g(size); } for (auto size : v) g(size); for (auto& [size, b] : v) g(size); }
----
a.cpp size
int «size»() { return 1; }
int f(int a, int size = 2);
int g() { return «size»(); }
----
a.ts push
function «push»() {}
function f(cb: (push: number) => void) { «push»(); }
----
a.rs size
pub fn «size»() {}
fn f(x: Option<i32>) { if let Some(size) = x { g(size) } while let Some(size) = x { g(size) } }
----
a.rs size
pub fn «size»() {}
fn f(x: i32) { match x { size @ 1..=2 => g(size), (size, _) | (_, size) => g(size), } }
----
a.rs size
pub fn «size»() {}
fn f(cb: fn(size: i32)) { «size»(); }
----
a.go size
package a
func «size»() {}
func f(cb func(size int)) { «size»() }
----
a.go size
package a
func «size»() (n int) { return }
func f() (size int) { return size }
----
a.py size
from numpy import *
def «size»(): ...
«size»()
----
a.cpp size
int size() { return 1; }
template <int size> int f() { return size; }
----
a.cpp size
int size() { return 1; }
template <class T> concept C = requires(T size) { size.x(); };
----
a.cpp size
namespace n { enum E { size }; E e = size; }
int size() { return 1; }
----
A.java Box
class Box {}
class B<Box> { Box x; }
----
A.java Box
class Box {}
class B { <Box> Box f(Box b) { return b; } }
----
a.ts Box
class Box {}
function f<Box>(b: Box): Box { return b; }
----
a.ts Box
interface Box {}
type I<T> = T extends infer Box ? Box : never;
----
a.ts Box
interface Box {}
type K = { [Box in 'a']: Box };
----
A.cs Box
class Box {}
class B<Box> { Box x; }
----
a.cpp Box
class Box {};
template <class Box> Box f(Box b) { return b; }
----
a.rs Box2
struct Box2;
fn f<Box2>(b: Box2) -> Box2 { b }
----
a.rs size
pub fn size() {}
fn f<const size: usize>() -> usize { size }
----
a.go Box
package a
type Box struct{}
func F[Box any](b Box) Box { return b }
----
a.py Box
class Box: ...
type L[Box] = list[Box]
----
a.rb size
def size
  1
end
size = 3
puts size
----
a.rb size
def size
  1
end
begin
rescue => size
  p size
end
----
a.js push
function push() {}
const q = class push { m() { return push; } };
----
a.cpp size
int size() { return 1; }
void f() { if (int size = 1; size) h(size); }
----
a.cpp size
int size() { return 1; }
auto f() { return [size = size()] { return size; }; }
----
A.cs Size
class A {
  static int Size() => 1;
  object F(int[] x) => from Size in x select Size;
}
----
A.cs A.Size
class A {
  static int Size() => 1;
  void F(object o) { var (Size, b) = o; H(Size); }
}
----
A.cs A.Size
class A {
  static int Size() => 1;
  object F(int[] x) => from a in x let Size = a select Size;
}
----
A.cs A.Size
class A {
  static int Size() => 1;
  object F(int[] x) => from a in x join Size in x on a equals Size select Size;
}
----
A.cs Box
class Box {}
class C { void F<Box>(Box b) {} }
----
A.java A.size
class A {
  int size = 1;
  int f(Object o) { if (o instanceof Integer size) { return size; } return 0; }
}
----
A.java A.size
class A {
  int size = 1;
  int f(Object o) { return switch (o) { case P(int size, int b) -> size; default -> 0; }; }
}
----
a.cpp size
int size() { return 1; }
namespace n { int size; int g() { return size; } }
----
a.cpp size
int size() { return 1; }
struct A { int *size; int g() { return *size; } };
----
a.cpp size
int size() { return 1; }
struct A { enum { size }; int g() { return size; } };
----
a.cpp Box
class Box {};
template <template <class> class Box> void f(Box<int> b) {}
----
a.cpp size
int size() { return 1; }
int g() { return [size](int x) { return size; }(1); }
----
a.cpp size
int size() { return 1; }
int g() { while (int size = h()) k(size); switch (int size = h()) { default: k(size); } }
----
a.ts Box
type Box = 1;
class C<Box> { b: Box; }
----
a.ts Box
type Box = 1;
interface C<Box> { b: Box }
type D<Box> = Box;
----
a.ts size
function size() {}
enum E { size = 1, b = size }
----
a.js size
function size() {}
function f({ size = 1, b: { c: [d] } }) { return size; }
----
a.rb size
def size
  1
end
a, size = 1, 2
p size
----
a.rb size
def size
  1
end
case x
in {size:}
  p size
end
----
a.rb size
def size
  1
end
case x
in [size, 1]
  p size
end
----
a.rb size
def size
  1
end
for size in [1]
  p size
end
----
a.rs Box2
struct Box2;
impl<Box2> T for V<Box2> { fn f(b: Box2) {} }
----
a.rs Box2
struct Box2;
struct Q<Box2> { b: Box2 }
----
a.rs size
pub fn size() {}
fn f(x: P) { let P { size, .. } = x; let (a, size) = y; g(size) }
----
a.go Box
package a
type Box struct{}
func (l *List[Box]) F(b Box) {}
----
a.go Box
package a
type Box struct{}
type L[Box any] struct{ b Box }
----
a.py size
def size(): ...
from numpy import *
size()
----
a.py Box
class Box: ...
def f[Box](b: Box) -> Box: return b
----
a.py size
def size(): ...
def f():
    from numpy import size as size
    return size
----
a.rs size
pub fn «size»() {}
mod m {
  use super::*;
  fn f() { «size»(); }
}
----
a.rs size
pub fn size() {}
mod m {
  use q::*;
  fn f() { size(); }
}
----
a.rs size
mod m {
  pub fn «size»() {}
  fn f() { «size»(); }
}
----
a.c size
static int size;
int f(void) { extern int size; return size; }
----
a.c size
int size(void) { return 1; }
int f(void) { int size(void); return size(); }
----
a.c size
int «size»(void) { return 1; }
int f(void) { int (*size)(void) = g; return size(); }
"""
OWNERS = r"""
A.cs Size
class A {
  static int «Size»() => 1;
  int this[int Size] => Size;
}
----
a.py size
def «size»(): ...
class A:
    x = «size»()
    def size(self): ...
----
a.cpp size
int «size»() { return 1; }
struct B { int x; };
struct W : B { int g(); };
int W::g() { return «size»(); }
----
A.java size
class A {
  int size() { return 1; }
  Object f() { return new java.util.ArrayList<Integer>() { int g() { return size(); } }; }
}
----
a.cpp size
int size() { return 1; }
struct W : std::string { int g() { return size(); } };
----
a.rb size
def size
  1
end
class A < Array
  def f
    size
  end
end
----
a.rb size
def size
  1
end
[1].instance_eval { size }
----
a.js A.size
class A { size() {} g() { return class { f() { return this.size(); } }; } }
----
a.js A.size
class A { size() {} static g() { return this.size(); } }
----
a.js A.size
class A { static size() {} g() { return this.size(); } }
----
a.py Box
class Box: ...
class B[Box]:
    def f(self, b: Box) -> Box: return b
----
A.java A.size
class A {
  int size() { return 1; }
  Runnable r = new Base() { public void run() { size(); } };
}
----
A.java A.size
class A {
  int size() { return 1; }
  Object r = new Object() { int size() { return 2; } int run() { return this.size(); } };
}
----
a.cpp size
int size() { return 1; }
using std::size;
int f(V v) { return size(v); }
----
a.cpp size
int size() { return 1; }
struct W : B { int g(); };
int W::g() { return size(); }
----
a.js A.size
class A { size() {} f() { const o = { g: function () { return this.size(); } }; } }
----
a.js A.size
class A { size() {} }
A.size();
----
a.js A.size
class A { static size() {} }
A.size();
function f(A) { A.size(); }
----
a.js A.size
class A { static size() {} static { this.size(); } static x = this.size(); y = () => this.size; }
----
a.js size
function size() {}
with (o) { size(); }
----
a.php A.size
<?php
class A { function size() {} function g() { return new class { function f() { return $this->size(); } }; } }
----
a.rb size
def size
  1
end
Q = Struct.new(:x) do
  def f
    size
  end
end
----
a.rb size
def size
  1
end
class A
  include Enumerable
  def f
    size
  end
end
----
a.rb A.size
class A
  def size
  end
  def self.g
    size
  end
end
----
a.rb A.size
class A
  def self.size
  end
  def g
    self.size
  end
end
----
a.rb size
describe 'x' do
  it { size }
end
def size
  1
end
----
a.py A.size
class A:
    def size(self): ...
    def g(self):
        def h(self): return self.size()
        return lambda: self.size()
----
a.rb size
def «size»
  1
end
x.each { |size| p size }
x.each { p «size» }
----
a.rb size
def size
  1
end
class A
  attr_reader :size
  def f
    size
  end
end
"""


@pytest.mark.parametrize(("path", "old", "marked"), cases(SCOPES))
def test_only_uses_in_sight_of_the_declaration_change(path: str, old: str, marked: str) -> None:
    assert lines_after(path, plain(marked), old, "Extent") == wanted(marked, old, "Extent")


@pytest.mark.parametrize(("path", "old", "marked"), cases(OWNERS))
def test_what_an_object_has_or_inherits_is_another_thing(path: str, old: str, marked: str) -> None:
    assert lines_after(path, plain(marked), old, "Extent") == wanted(marked, old, "Extent")
