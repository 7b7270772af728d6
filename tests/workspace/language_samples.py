"""One edit in each of several languages, with what a careful person would make of it; no tests here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """A file, a block of it and what the block becomes. `typo` is a slip in a line that stays as it is."""

    text: str
    old: str
    new: str
    typo: tuple[str, str]

    @property
    def expected(self) -> str:
        """The file afterwards."""
        assert self.text.count(self.old) == 1
        assert self.old.count(self.typo[0]) == self.new.count(self.typo[0]) == 1
        return self.text.replace(self.old, self.new)


PYTHON = Sample(
    '''\
class Queue:
    """Jobs in the order they came."""

    def take(self, count):
        taken = []
        while self.jobs and len(taken) < count:
            taken.append(self.jobs.pop(0))
        return taken

    def size(self):
        return len(self.jobs)
''',
    """\
    def take(self, count):
        taken = []
        while self.jobs and len(taken) < count:
            taken.append(self.jobs.pop(0))
        return taken
""",
    """\
    def take(self, count):
        taken = []
        while self.jobs and len(taken) < count:
            job = self.jobs.popleft()
            if job.ready:
                taken.append(job)
        return taken
""",
    ("def take(self, count):", "def take(slef, count):"),
)

TYPESCRIPT = Sample(
    """\
export class Store<T> {
  private items = new Map<string, T>();

  get(key: string): T | undefined {
    const found = this.items.get(key);
    if (!found) {
      return undefined;
    }
    return found;
  }

  clear(): void {
    this.items.clear();
  }
}
""",
    """\
  get(key: string): T | undefined {
    const found = this.items.get(key);
    if (!found) {
      return undefined;
    }
    return found;
  }
""",
    """\
  get(key: string): T | undefined {
    const found = this.items.get(key);
    if (found === undefined) {
      this.misses += 1;
      return undefined;
    }
    return found;
  }
""",
    ("const found = this.items", "const fuond = this.items"),
)

GO = Sample(
    """\
package main

func sum(numbers []int) (int, error) {
\ttotal := 0
\tfor _, number := range numbers {
\t\tif number < 0 {
\t\t\treturn 0, errNegative
\t\t}
\t\ttotal += number
\t}
\treturn total, nil
}
""",
    """\
\tfor _, number := range numbers {
\t\tif number < 0 {
\t\t\treturn 0, errNegative
\t\t}
\t\ttotal += number
\t}
""",
    """\
\tfor _, number := range numbers {
\t\tif number <= 0 {
\t\t\tlog.Println(number)
\t\t\treturn 0, errNotPositive
\t\t}
\t\ttotal += number
\t}
""",
    ("range numbers", "range nubmers"),
)

RUST = Sample(
    """\
impl Meter {
    pub fn read(&self) -> Option<u32> {
        match self.value {
            Some(value) if value > 0 => Some(value),
            _ => None,
        }
    }

    pub fn reset(&mut self) {
        self.value = None;
    }
}
""",
    """\
    pub fn read(&self) -> Option<u32> {
        match self.value {
            Some(value) if value > 0 => Some(value),
            _ => None,
        }
    }
""",
    """\
    pub fn read(&self) -> Option<u32> {
        match self.value {
            Some(value) => {
                Some(value * self.scale)
            }
            _ => None,
        }
    }
""",
    ("match self.value", "match self.vlaue"),
)

YAML = Sample(
    """\
services:
  web:
    image: shop
    environment:
      LOG: info
      MODE: fast
    ports:
      - "80:80"
  cache:
    image: memory
""",
    """\
    environment:
      LOG: info
      MODE: fast
    ports:
      - "80:80"
""",
    """\
    environment:
      LOG: debug
      REGION: north
      MODE: fast
    ports:
      - "80:80"
""",
    ("environment:", "enviroment:"),
)

MARKDOWN = Sample(
    """\
# Guide

Some words first.

- one point
- another point
  - a detail of it
- the last point

More words.
""",
    """\
- one point
- another point
  - a detail of it
- the last point
""",
    """\
- one point
- another point
  - a detail of it
  - a second detail
- the very last point
""",
    ("another point", "anotther point"),
)

MAKEFILE = Sample(
    """\
all: build test

build:
\tmkdir -p out
\t@echo building
\tcc -o out/tool main.c

test: build
\t./out/tool --check
""",
    """\
build:
\tmkdir -p out
\t@echo building
\tcc -o out/tool main.c
""",
    """\
build:
\tmkdir -p out
\t@echo building
\tcc -O2 -o out/tool main.c
\tstrip out/tool
""",
    ("@echo building", "@echo buildign"),
)

HTML = Sample(
    """\
<body>
  <ul class="menu">
    <li><a href="/">Home</a></li>
    <li><a href="/about">About</a></li>
  </ul>
  <main>
    <p>Welcome</p>
  </main>
</body>
""",
    """\
  <ul class="menu">
    <li><a href="/">Home</a></li>
    <li><a href="/about">About</a></li>
  </ul>
""",
    """\
  <ul class="menu">
    <li><a href="/">Home</a></li>
    <li><a href="/news">News</a></li>
    <li><a href="/contact">Contact</a></li>
  </ul>
""",
    ('<ul class="menu">', '<ul calss="menu">'),
)

CHINESE = Sample(
    """\
def 问候(名字):
    # 先检查名字是否为空,再返回问候语
    if not 名字:
        return "你好,陌生人。"
    return f"你好,{名字}!"


def 告别(名字):
    return f"再见,{名字}。"
""",
    """\
    # 先检查名字是否为空,再返回问候语
    if not 名字:
        return "你好,陌生人。"
    return f"你好,{名字}!"
""",
    """\
    # 先检查名字是否为空,再返回问候语
    if not 名字.strip():
        记录("没有名字")
        return "你好,朋友。"
    return f"你好,{名字}!"
""",
    ("先检查名字", "先捡查名字"),
)

SAMPLES = {
    "python": PYTHON,
    "typescript": TYPESCRIPT,
    "go": GO,
    "rust": RUST,
    "yaml": YAML,
    "markdown": MARKDOWN,
    "makefile": MAKEFILE,
    "html": HTML,
    "chinese": CHINESE,
}
