"""Tasks of five more kinds, each a project of a few files with tests that decide: a signature that is to change, a
function that is to be moved, an error of types, an import that fails, documentation that is wrong.

They are drawn only where their kinds are asked for, so that what a seed draws of the older kinds stays. Not here:
faults (`faults.py`), additions (`additions.py`), renames (`renames.py`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.bench.tasks.additions import filled
from tests.bench.tasks.sources import surroundings
from tests.bench.tasks.task import Task, unittest_command
from tests.bench.tasks.words import CHINESE_SHARE

TEST_FILE = "test_project.py"


@dataclass(frozen=True, slots=True)
class Form:
    """A project whose first file is the one to change; `names` are those that `$name` may be, `test` the body of a test
    class, `answer` the texts of the files that change, as they might be in the end.
    """

    kind: str
    names: tuple[str, ...]
    files: Mapping[str, str]
    english: str
    chinese: str
    test: str
    answer: Mapping[str, str] = field(repr=False)


FORMS = (
    Form(
        "signature",
        ("total", "price_of", "amount_due"),
        {
            "prices.py": '''
def $name(prices):
    """The sum of prices with tax."""
    return sum(prices) * (1 + 0.25)
''',
            "invoice.py": '''
from prices import $name


def last_line(customer, prices):
    """The last line of an invoice."""
    return f"{customer}: {$name(prices):.2f}"
''',
            "export.py": '''
import prices


def rows(orders):
    """The orders of customers abroad, who pay no tax, with what they owe."""
    return [(order, prices.$name(order)) for order in orders]
''',
        },
        "Give $name in prices.py a second parameter, tax, without a default, instead of the fixed 0.25. The invoice "
        "goes on with 0.25, export.rows uses 0.",
        "给 prices.py 中的 $name 加上第二个参数 tax（没有默认值），代替固定的 0.25。"
        "invoice 仍用 0.25，export.rows 用 0。",
        """
    def test_the_function(self):
        self.assertEqual(prices.$name([4, 4], 0.5), 12)
        self.assertEqual(prices.$name([4, 4], tax=0), 8)
        with self.assertRaises(TypeError):
            prices.$name([4])

    def test_its_callers(self):
        self.assertEqual(invoice.last_line("Ann", [8]), "Ann: 10.00")
        self.assertEqual(export.rows([[1, 2]]), [([1, 2], 3)])
""",
        {
            "prices.py": '''
def $name(prices, tax):
    """The sum of prices with tax."""
    return sum(prices) * (1 + tax)
''',
            "invoice.py": '''
from prices import $name


def last_line(customer, prices):
    """The last line of an invoice."""
    return f"{customer}: {$name(prices, 0.25):.2f}"
''',
            "export.py": '''
import prices


def rows(orders):
    """The orders of customers abroad, who pay no tax, with what they owe."""
    return [(order, prices.$name(order, 0)) for order in orders]
''',
        },
    ),
    Form(
        "signature",
        ("centre", "boxed", "padded"),
        {
            "layout.py": '''
def $name(text, width, fill=" "):
    """A text in the middle of a line of this width."""
    left = max(width - len(text), 0) // 2
    return (fill * left + text).ljust(width, fill)
''',
            "banner.py": '''
from layout import $name


def banner(title):
    """A title between stars."""
    return $name(title, 9, "*")
''',
            "menu.py": '''
from layout import $name


def menu(entries):
    """The entries below each other."""
    return "\\n".join($name(entry, 7) for entry in entries)
''',
        },
        "In layout.py fill of $name is to be given by its name only, not by its place. Change its callers as well.",
        "请把 layout.py 中 $name 的参数 fill 改为只能用关键字传递，并修改所有调用它的地方。",
        """
    def test_the_function(self):
        self.assertEqual(layout.$name("a", 3, fill="-"), "-a-")
        with self.assertRaises(TypeError):
            layout.$name("a", 3, "-")

    def test_its_callers(self):
        self.assertEqual(banner.banner("new"), "***new***")
        self.assertEqual(menu.menu(["a", "bcd"]), "   a   \\n  bcd  ")
""",
        {
            "layout.py": '''
def $name(text, width, *, fill=" "):
    """A text in the middle of a line of this width."""
    left = max(width - len(text), 0) // 2
    return (fill * left + text).ljust(width, fill)
''',
            "banner.py": '''
from layout import $name


def banner(title):
    """A title between stars."""
    return $name(title, 9, fill="*")
''',
        },
    ),
    Form(
        "moved",
        ("plain", "slug", "simple_name"),
        {
            "helpers.py": '''
def $name(title):
    """A title in small letters, with lines for blanks."""
    return "-".join(title.lower().split())


def halves(items):
    """The first and the second half of a list."""
    middle = len(items) // 2
    return items[:middle], items[middle:]
''',
            "titles.py": '''
def shortened(title):
    """A title of ten characters at most."""
    return title if len(title) <= 10 else title[:9] + "~"
''',
            "pages.py": '''
from helpers import $name, halves


def addresses(titles):
    """The addresses of pages in two columns."""
    return halves([f"/{$name(title)}" for title in titles])
''',
        },
        "Move $name from helpers.py to titles.py, where it belongs. Nothing of it stays in helpers.py, not even an "
        "import.",
        "请把 $name 从 helpers.py 移到 titles.py，helpers.py 里不要留下任何东西（包括 import）。",
        """
    def test_it_is_there(self):
        self.assertEqual(titles.$name("An Old  Page"), "an-old-page")
        self.assertEqual(titles.$name.__module__, "titles")
        self.assertEqual(titles.shortened("0123456789a"), "012345678~")

    def test_nothing_is_left(self):
        self.assertFalse(hasattr(helpers, "$name"))
        self.assertEqual(helpers.halves([1, 2]), ([1], [2]))
        self.assertEqual(pages.addresses(["A b", "C"]), (["/a-b"], ["/c"]))
""",
        {
            "helpers.py": '''
def halves(items):
    """The first and the second half of a list."""
    middle = len(items) // 2
    return items[:middle], items[middle:]
''',
            "titles.py": '''
def $name(title):
    """A title in small letters, with lines for blanks."""
    return "-".join(title.lower().split())


def shortened(title):
    """A title of ten characters at most."""
    return title if len(title) <= 10 else title[:9] + "~"
''',
            "pages.py": '''
from helpers import halves
from titles import $name


def addresses(titles):
    """The addresses of pages in two columns."""
    return halves([f"/{$name(title)}" for title in titles])
''',
        },
    ),
    Form(
        "type",
        ("summary", "status_line", "overview"),
        {
            "tasks.py": '''
from dataclasses import dataclass


@dataclass
class Job:
    """Something to do, with how many hours it takes, if anybody knows."""

    title: str
    hours: int | None = None


def $name(jobs: list[Job]) -> str:
    """How many jobs there are and how long those take together of which it is known."""
    hours = 0
    for job in jobs:
        hours += job.hours
    return str(len(jobs)) + " jobs, " + hours + " hours"
''',
        },
        "Calling $name in tasks.py ends with TypeError: unsupported operand type(s) for +=: 'int' and 'NoneType', and "
        "with another TypeError when all hours are known. Repair it.",
        "调用 tasks.py 里的 $name 会抛出 TypeError（hours 可能是 None；全部已知时拼接字符串也会出错）。请修复。",
        """
    def test_known_hours(self):
        self.assertEqual(tasks.$name([tasks.Job("a", 2), tasks.Job("b", 3)]), "2 jobs, 5 hours")

    def test_unknown_hours(self):
        self.assertEqual(tasks.$name([tasks.Job("a"), tasks.Job("b", 3)]), "2 jobs, 3 hours")
        self.assertEqual(tasks.$name([]), "0 jobs, 0 hours")
""",
        {
            "tasks.py": '''
from dataclasses import dataclass


@dataclass
class Job:
    """Something to do, with how many hours it takes, if anybody knows."""

    title: str
    hours: int | None = None


def $name(jobs: list[Job]) -> str:
    """How many jobs there are and how long those take together of which it is known."""
    hours = 0
    for job in jobs:
        hours += job.hours or 0
    return f"{len(jobs)} jobs, {hours} hours"
''',
        },
    ),
    Form(
        "import",
        ("Account", "Customer", "Member"),
        {
            "orders.py": '''
from people import $name


class Order:
    """What somebody ordered."""

    def __init__(self, buyer: $name, price: int):
        self.buyer = buyer
        self.price = price
        buyer.orders.append(self)
''',
            "people.py": '''
from orders import Order


class $name:
    """Somebody who orders."""

    def __init__(self, name: str):
        self.name = name
        self.orders: list[Order] = []

    def order(self, price: int) -> Order:
        """Order something."""
        return Order(self, price)
''',
        },
        "`import orders` ends with ImportError: cannot import name '$name' from partially initialized module 'people'. "
        "Make both modules importable, in any order, and leave the classes where they are.",
        "`import orders` 报错 ImportError（orders.py 与 people.py 循环导入）。"
        "请修复，两个模块都要能以任意顺序导入，类不要移动。",
        """
    def test_either_may_come_first(self):
        for first in ("orders", "people"):
            with self.subTest(first):
                code = f"import {first}, orders, people; print(people.$name('Ann').order(3).price)"
                said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
                self.assertEqual(said.stdout, "3\\n", said.stderr[-500:])

    def test_they_are_where_they_were(self):
        import orders, people
        ann = people.$name("Ann")
        self.assertEqual((ann.order(2).buyer, len(ann.orders)), (ann, 1))
        self.assertEqual((people.$name.__module__, orders.Order.__module__), ("people", "orders"))
""",
        {
            "orders.py": '''
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from people import $name


class Order:
    """What somebody ordered."""

    def __init__(self, buyer: $name, price: int):
        self.buyer = buyer
        self.price = price
        buyer.orders.append(self)
''',
        },
    ),
    Form(
        "docs",
        ("initials", "monogram", "short_name"),
        {
            "names.py": '''
def $name(name, dots=True):
    """Return the first letters of a name.

    With dots there is one behind each letter; there are none by default.

    >>> $name("ada king lovelace")
    'AKL'
    >>> $name("Alan Turing", dots=False)
    'A.T.'
    """
    end = "." if dots else ""
    return "".join(part[0].upper() + end for part in name.split())
''',
        },
        "The documentation of $name in names.py is wrong: its examples and what it says of the default do not agree "
        "with the code. The code is right. Correct the docstring.",
        "names.py 中 $name 的文档字符串有误：示例和对默认值的说明与代码不符。代码是对的，请只修改文档字符串。",
        """
    def test_the_examples_hold(self):
        found = doctest.DocTestFinder().find(names.$name, "$name", globs=vars(names))
        self.assertEqual(sum(len(each.examples) for each in found), 2)
        for each in found:
            self.assertEqual(doctest.DocTestRunner(verbose=False).run(each, out=lambda text: None).failed, 0)

    def test_what_it_says_of_the_default(self):
        self.assertNotIn("there are none by default", " ".join(names.$name.__doc__.split()))

    def test_the_code_is_as_it_was(self):
        self.assertEqual(names.$name("ada king"), "A.K.")
        self.assertEqual(names.$name("ada king", False), "AK")
""",
        {
            "names.py": '''
def $name(name, dots=True):
    """Return the first letters of a name.

    By default there is a dot behind each letter; without dots there are none.

    >>> $name("ada king lovelace")
    'A.K.L.'
    >>> $name("Alan Turing", dots=False)
    'AT'
    """
    end = "." if dots else ""
    return "".join(part[0].upper() + end for part in name.split())
''',
        },
    ),
)
KINDS = tuple(dict.fromkeys(form.kind for form in FORMS))
HEAD = """import doctest
import subprocess
import sys
import unittest

{imports}

class ProjectTest(unittest.TestCase):
"""


def change_task(chance: random.Random, task_id: str, kind: str, size: str, number: int) -> Task:
    """A task of this kind; the file to change is longer in larger ones."""
    forms = [form for form in FORMS if form.kind == kind]
    form = forms[number % len(forms)]
    drawn = {"name": chance.choice(form.names)}
    files = laid(form.files, drawn)
    place, *also = files
    if size != "small":
        files[place] = surroundings(chance, files[place], size, drawn.values())
    words = filled(form.chinese if chance.random() < CHINESE_SHARE else form.english, drawn)
    files[TEST_FILE] = test_text(form, drawn)
    cause = f"{kind}: {drawn['name']}"
    changed = tuple(file for file in also if file in form.answer)
    check = unittest_command([TEST_FILE])
    return Task(task_id, kind, size, words, files, (TEST_FILE,), check, place, cause, changed)


def laid(files: Mapping[str, str], drawn: Mapping[str, str]) -> dict[str, str]:
    """The texts of files with the drawn name in them."""
    return {file: filled(text, drawn).lstrip("\n") for file, text in files.items()}


def test_text(form: Form, drawn: Mapping[str, str]) -> str:
    """The test of a form. What cannot be imported yet is imported by the tests themselves."""
    modules = () if form.kind == "import" else (file.removesuffix(".py") for file in form.files)
    imports = "".join(f"import {module}\n" for module in modules)
    return HEAD.format(imports=imports) + filled(form.test, drawn).strip("\n") + "\n"
