"""Tasks to rename something in three files: where it is defined and two that use it, with tests of the new name."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.bench.tasks.additions import filled
from tests.bench.tasks.sources import FOLDERS, surroundings
from tests.bench.tasks.task import Task, unittest_command
from tests.bench.tasks.words import rename_words


@dataclass(frozen=True, slots=True)
class Form:
    """Three modules by their names, the first of which defines `$name`; `test` is the body of a test method."""

    sort: str
    names: tuple[tuple[str, str], ...]
    defines: tuple[str, str]
    uses: tuple[tuple[str, str], tuple[str, str]]
    test: str


FORMS = (
    Form(
        "function",
        (("calc_sum", "total_price"), ("get_cost", "price_of"), ("amount", "price_with_tax")),
        ("prices.py", '''
TAX = 0.25


def $name(prices):
    """The sum of prices with tax."""
    return sum(prices) * (1 + TAX)
'''),
        (
            ("invoice.py", '''
from prices import $name


def invoice(customer, prices):
    """The last line of an invoice."""
    return f"{customer}: {$name(prices):.2f}"
'''),
            ("report.py", '''
import prices


def largest(orders):
    """The order that costs most."""
    return max(orders, key=prices.$name)
'''),
        ),
        """
        self.assertEqual(prices.$name([4, 4]), 10)
        self.assertEqual(invoice.invoice("Ann", [8]), "Ann: 10.00")
        self.assertEqual(report.largest([[1], [3, 4], [2]]), [3, 4])
""",
    ),
    Form(
        "class",
        (("Thing", "Product"), ("Item", "Article"), ("Obj", "Good")),
        ("stock.py", '''
class $name:
    """Something that is sold, with how much of it there is."""

    def __init__(self, title, count=0):
        self.title = title
        self.count = count

    def more(self, count):
        """The same with a larger count."""
        return $name(self.title, self.count + count)
'''),
        (
            ("store.py", '''
from stock import $name


def delivery(titles):
    """One of each of these."""
    return [$name(title, 1) for title in titles]
'''),
            ("labels.py", '''
from stock import $name


def label(something):
    """What is written on the shelf."""
    if not isinstance(something, $name):
        raise TypeError("not a $name")
    return f"{something.title} ({something.count})"
'''),
        ),
        """
        self.assertEqual(stock.$name("pen").more(2).count, 2)
        self.assertEqual([each.title for each in store.delivery(["ink", "pen"])], ["ink", "pen"])
        self.assertEqual(labels.label(stock.$name("ink", 3)), "ink (3)")
""",
    ),
    Form(
        "constant",
        (("MAX", "MAX_TRIES"), ("LIMIT", "TRIES_ALLOWED"), ("NUM", "ATTEMPTS")),
        ("limits.py", '''
$name = 3
PAUSE = 2


def left(tries):
    """How many tries are left."""
    return max($name - tries, 0)
'''),
        (
            ("client.py", '''
from limits import $name, PAUSE


def longest_wait():
    """How long a client waits at most."""
    return $name * PAUSE
'''),
            ("messages.py", '''
import limits


def give_up(tries):
    """What is said after so many tries."""
    if tries < limits.$name:
        return "again"
    return f"gave up after {limits.$name} tries"
'''),
        ),
        """
        self.assertEqual((limits.$name, limits.left(1)), (3, 2))
        self.assertEqual(client.longest_wait(), 6)
        self.assertEqual([messages.give_up(1), messages.give_up(3)], ["again", "gave up after 3 tries"])
""",
    ),
    Form(
        "method",
        (("go", "forward"), ("do_step", "advance"), ("mv", "move")),
        ("robot.py", '''
class Robot:
    """Something that walks on a line."""

    def __init__(self):
        self.place = 0

    def $name(self, steps):
        """Walk so many steps."""
        self.place += steps
        return self
'''),
        (
            ("path.py", '''
from robot import Robot


def end_of(walk):
    """Where a robot is after a walk."""
    robot = Robot()
    for steps in walk:
        robot.$name(steps)
    return robot.place
'''),
            ("race.py", '''
from robot import Robot


def winner(speeds):
    """The name of the robot that is furthest after one step of its speed."""
    robots = {name: Robot().$name(speed) for name, speed in speeds.items()}
    return max(robots, key=lambda name: robots[name].place)
'''),
        ),
        """
        self.assertEqual(robot.Robot().$name(2).$name(3).place, 5)
        self.assertEqual(path.end_of([1, 2, -4]), -1)
        self.assertEqual(race.winner({"a": 1, "b": 3}), "b")
""",
    ),
    Form(
        "exception",
        (("BadInput", "InvalidLine"), ("MyError", "LineError"), ("Problem", "SyntaxProblem")),
        ("lines.py", '''
class $name(ValueError):
    """A line that cannot be read."""


def read(line):
    """The two numbers of a line."""
    parts = line.split()
    if len(parts) != 2:
        raise $name(line)
    return int(parts[0]), int(parts[1])
'''),
        (
            ("table.py", '''
from lines import $name, read


def rows(text):
    """The rows of a text; lines that cannot be read are left out."""
    found = []
    for line in text.splitlines():
        try:
            found.append(read(line))
        except $name:
            continue
    return found
'''),
            ("checks.py", '''
import lines


def is_good(line):
    """Whether a line can be read."""
    try:
        lines.read(line)
    except lines.$name:
        return False
    return True
'''),
        ),
        """
        with self.assertRaises(lines.$name):
            lines.read("1 2 3")
        self.assertEqual(table.rows("1 2\\nx\\n3 4"), [(1, 2), (3, 4)])
        self.assertEqual([checks.is_good("1 2"), checks.is_good("1")], [True, False])
""",
    ),
)  # fmt: skip
STEP = {"small": 0, "medium": 4, "large": 2}
TEST = """import tokenize
import unittest

import {first}
import {second}
import {third}


class RenameTest(unittest.TestCase):
    def test_it_works_with_the_new_name(self):
{body}

    def test_the_old_name_is_gone(self):
        for module in ({first}, {second}, {third}):
            with open(module.__file__, "rb") as file:
                names = {{token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.NAME}}
            self.assertNotIn("{old}", names, module.__name__)
"""
"""The name is gone as a name. In the words of a message it may stand: nobody knows that they speak of the class."""


def rename_task(chance: random.Random, task_id: str, size: str, number: int) -> Task:
    """A task of this size: the defining file is longer for larger ones."""
    form = FORMS[(STEP[size] + number) % len(FORMS)]
    old, new = chance.choice(form.names)
    files, test = project(form, old, new)
    place = form.defines[0]
    if size != "small":
        files[place] = surroundings(chance, files[place], size, (old, new))
    words = rename_words(chance, sort=form.sort, old=old, new=new, file=place)
    if size == "large":
        files |= {f"{folder}.py": f'"""Not written yet: {folder}."""\n' for folder in chance.sample(FOLDERS, 2)}
    files["test_names.py"] = test
    cause = f"{form.sort} {old} is to be called {new}"
    tests = ("test_names.py",)
    also = tuple(file for file, _ in form.uses)
    return Task(task_id, "rename", size, words, files, tests, unittest_command(tests), place, cause, also)


def project(form: Form, name: str, new: str) -> tuple[dict[str, str], str]:
    """The three files with this name in them, and the test that wants the new one."""
    files = {file: filled(text, {"name": name}).lstrip("\n") for file, text in (form.defines, *form.uses)}
    first, second, third = (file.removesuffix(".py") for file in files)
    body = filled(form.test, {"name": new}).strip("\n")
    return files, TEST.format(first=first, second=second, third=third, body=body, old=name)
