"""The forms of additions: code that is there, what is to be added in words, tests, and one answer that passes them.

Words in `$` are drawn from `choices`. The answer is for checking the form itself and is in no task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """`answer` replaces the first text of each pair by the second; an empty first text appends."""

    name: str
    code: str
    english: str
    chinese: str
    test: str
    answer: tuple[tuple[str, str], ...]
    choices: tuple[Mapping[str, str], ...]


def _choices(names: str, *rows: str) -> tuple[Mapping[str, str], ...]:
    """Rows of values for these names, each separated by spaces."""
    return tuple(dict(zip(names.split(), row.split(), strict=True)) for row in rows)


FORMS = (
    Form(
        name="last",
        code='''
def first(items, count):
    """The first items of a sequence."""
    return items[:count]


def middle(items):
    """The item in the middle of a sequence that is not empty."""
    return items[len(items) // 2]
''',
        english="Add a function $name(items, count) to $file that returns the last count items of a list, in order; "
        "all of them when there are fewer, none when count is 0.",
        chinese="请在 $file 中添加函数 $name(items, count)：按顺序返回列表最后 count 个元素；"
        "不足时返回全部，count 为 0 时返回空列表。",
        test="""
    def test_the_end(self):
        self.assertEqual($name([1, 2, 3, 4], 2), [3, 4])

    def test_fewer_and_none(self):
        self.assertEqual($name([1, 2], 5), [1, 2])
        self.assertEqual($name([1, 2], 0), [])
""",
        answer=(("", "def $name(items, count):\n    return items[max(len(items) - count, 0):]\n"),),
        choices=_choices("name", "last", "tail", "ending"),
    ),
    Form(
        name="clamp",
        code='''
def scale(value, factor):
    """A value times a factor, rounded to two digits."""
    return round(value * factor, 2)


def distance(first, second):
    """How far two values are apart."""
    return abs(first - second)
''',
        english="Add $name(value, low, high) to $file: it returns the value, but low if the value is below low and "
        "high if it is above high. It raises ValueError if low is greater than high.",
        chinese="请在 $file 中添加函数 $name(value, low, high)：返回 value，但小于 low 时返回 low，"
        "大于 high 时返回 high；"
        "如果 low 大于 high，抛出 ValueError。",
        test="""
    def test_within_and_outside(self):
        self.assertEqual($name(5, 0, 10), 5)
        self.assertEqual($name(-5, 0, 10), 0)
        self.assertEqual($name(15, 0, 10), 10)

    def test_wrong_limits(self):
        with self.assertRaises(ValueError):
            $name(1, 3, 2)
""",
        answer=(
            (
                "",
                "def $name(value, low, high):\n    if low > high:\n        raise ValueError(low)\n"
                "    return max(low, min(value, high))\n",
            ),
        ),
        choices=_choices("name", "clamp", "limited", "bounded"),
    ),
    Form(
        name="parameter",
        code='''
def join_words(words):
    """The words of a list as one text."""
    text = ""
    for word in words:
        if text:
            text += " "
        text += word
    return text


def count_words(text):
    """How many words a text has."""
    return len(text.split())
''',
        english="Give the function join_words in $file a second parameter $name with the default value of one space; "
        "it is put between the words.",
        chinese="请给 $file 中的函数 join_words 增加第二个参数 $name，默认值是一个空格，用来放在单词之间。",
        test="""
    def test_as_before(self):
        self.assertEqual(join_words(["a", "b"]), "a b")
        self.assertEqual(join_words([]), "")

    def test_another_one(self):
        self.assertEqual(join_words(["a", "b", "c"], $name=", "), "a, b, c")
        self.assertEqual(join_words(["a", "b"], "-"), "a-b")
""",
        answer=(("(words)", '(words, $name=" ")'), ('text += " "', "text += $name")),
        choices=_choices("name", "separator", "glue", "between"),
    ),
    Form(
        name="method",
        code='''
class $owner:
    """Amounts that were added one after the other."""

    def __init__(self):
        self.amounts = []

    def add(self, amount):
        """Take one more amount."""
        self.amounts.append(amount)

    def total(self):
        """The sum of all amounts."""
        return sum(self.amounts)
''',
        english="Add a method $name() to the class $owner in $file. It returns the average of all amounts, "
        "and 0 when there are none.",
        chinese="请在 $file 的类 $owner 中添加方法 $name()，返回所有金额的平均值；没有金额时返回 0。",
        test="""
    def test_some_amounts(self):
        some = $owner()
        some.add(2)
        some.add(5)
        self.assertEqual(some.$name(), 3.5)
        self.assertEqual(some.total(), 7)

    def test_none(self):
        self.assertEqual($owner().$name(), 0)
""",
        answer=(
            (
                "        return sum(self.amounts)\n",
                "        return sum(self.amounts)\n\n    def $name(self):\n"
                "        return self.total() / len(self.amounts) if self.amounts else 0\n",
            ),
        ),
        choices=_choices("owner name", "Account average", "Ledger mean", "Purse average"),
    ),
    Form(
        name="undo",
        code='''
class $owner:
    """A pile of things; the last one that was put on it is the first one taken."""

    def __init__(self):
        self._items = []

    def push(self, item):
        """Put an item on top."""
        self._items.append(item)

    def pop(self):
        """Take the item from the top; IndexError when there is none."""
        return self._items.pop()

    def __len__(self):
        return len(self._items)
''',
        english="The class $owner in $file needs a method $name(default=None): it returns the item on top without "
        "taking it away, or the default when there is none.",
        chinese="$file 中的类 $owner 需要一个方法 $name(default=None)：返回最上面的元素但不取走；为空时返回 default。",
        test="""
    def test_the_top_stays(self):
        pile = $owner()
        pile.push(1)
        pile.push(2)
        self.assertEqual(pile.$name(), 2)
        self.assertEqual(len(pile), 2)

    def test_nothing_there(self):
        self.assertIsNone($owner().$name())
        self.assertEqual($owner().$name("none"), "none")
""",
        answer=(
            (
                "    def __len__",
                "    def $name(self, default=None):\n"
                "        return self._items[-1] if self._items else default\n\n    def __len__",
            ),
        ),
        choices=_choices("owner name", "Stack peek", "Pile top", "Tower look"),
    ),
    Form(
        name="counts",
        code='''
def words_of(text):
    """The words of a text in lower case, without marks at their ends."""
    return [word.strip(".,;:!?").lower() for word in text.split()]
''',
        english="Add to $file a function $name(text) that tells how often each word occurs: a dict from word to "
        "number, with the words as words_of gives them.",
        chinese="请在 $file 中添加函数 $name(text)，返回每个单词出现的次数（字典：单词到次数），单词由 words_of 给出。",
        test="""
    def test_counting(self):
        self.assertEqual(dict($name("One two, two. ONE one")), {"one": 3, "two": 2})

    def test_nothing(self):
        self.assertEqual(dict($name("")), {})
""",
        answer=(
            (
                "",
                "def $name(text):\n    found = {}\n    for word in words_of(text):\n"
                "        found[word] = found.get(word, 0) + 1\n    return found\n",
            ),
        ),
        choices=_choices("name", "frequencies", "word_counts", "tally"),
    ),
    Form(
        name="reverse",
        code='''
def to_seconds(hours, minutes, seconds):
    """A length of time in seconds."""
    return hours * 3600 + minutes * 60 + seconds
''',
        english="Add a function $name(seconds) to $file that does the opposite of to_seconds: "
        "it returns the tuple (hours, minutes, seconds).",
        chinese="请在 $file 中添加函数 $name(seconds)，与 to_seconds 相反：返回元组 (小时, 分钟, 秒)。",
        test="""
    def test_parts(self):
        self.assertEqual($name(3725), (1, 2, 5))
        self.assertEqual($name(59), (0, 0, 59))

    def test_there_and_back(self):
        self.assertEqual($name(to_seconds(30, 59, 7)), (30, 59, 7))
""",
        answer=(("", "def $name(seconds):\n    return seconds // 3600, seconds // 60 % 60, seconds % 60\n"),),
        choices=_choices("name", "from_seconds", "split_seconds", "parts_of_time"),
    ),
    Form(
        name="chunks",
        code='''
def flatten(groups):
    """The items of all groups in one list."""
    return [item for group in groups for item in group]
''',
        english="Please write a function $name(items, size) in $file that cuts a list into lists of size items; the "
        "last one may be shorter. A size below 1 raises ValueError.",
        chinese="请在 $file 中编写函数 $name(items, size)：把列表切成每段 size 个元素的列表，"
        "最后一段可以更短；size 小于 1 时抛出 ValueError。",
        test="""
    def test_cut(self):
        self.assertEqual($name([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]])
        self.assertEqual($name([], 3), [])

    def test_wrong_size(self):
        with self.assertRaises(ValueError):
            $name([1], 0)

    def test_there_and_back(self):
        self.assertEqual(flatten($name([1, 2, 3], 2)), [1, 2, 3])
""",
        answer=(
            (
                "",
                "def $name(items, size):\n    if size < 1:\n        raise ValueError(size)\n"
                "    return [items[at : at + size] for at in range(0, len(items), size)]\n",
            ),
        ),
        choices=_choices("name", "chunks", "pages", "batches"),
    ),
    Form(
        name="option",
        code='''
def $name(names):
    """The names in alphabetical order, each once."""
    return sorted(set(names))


def longest(names):
    """The longest name, the first of several."""
    return max(names, key=len)
''',
        english="$name in $file should take an optional parameter limit (default None): when it is given, "
        "at most so many names are returned.",
        chinese="请给 $file 中的 $name 增加可选参数 limit（默认 None）：给出时最多返回这么多个名字。",
        test="""
    def test_as_before(self):
        self.assertEqual($name(["b", "a", "b"]), ["a", "b"])

    def test_a_limit(self):
        self.assertEqual($name(["c", "a", "b"], limit=2), ["a", "b"])
        self.assertEqual($name(["c", "a"], limit=0), [])
        self.assertEqual($name(["c", "a"], limit=9), ["a", "c"])
""",
        answer=(
            ('(names):\n    """The names', '(names, limit=None):\n    """The names'),
            ("return sorted(set(names))", "return sorted(set(names))[:limit]"),
        ),
        choices=_choices("name", "unique_names", "directory", "roll"),
    ),
    Form(
        name="equality",
        code='''
class $owner:
    """A place by its two coordinates."""

    def __init__(self, x, y):
        self.x = x
        self.y = y

    def moved(self, dx, dy):
        """Another place, so much further."""
        return $owner(self.x + dx, self.y + dy)
''',
        english="Two objects of the class $owner in $file should be equal (==) when their x and y are equal, "
        "and never equal to something of another type. Write the method for it.",
        chinese="$file 中类 $owner 的两个对象在 x 和 y 都相同时应当相等（==），"
        "与其他类型的对象永不相等。请编写相应的方法。",
        test="""
    def test_equal(self):
        self.assertEqual($owner(1, 2), $owner(1, 2))
        self.assertEqual($owner(1, 2).moved(1, 0), $owner(2, 2))

    def test_not_equal(self):
        self.assertNotEqual($owner(1, 2), $owner(2, 1))
        self.assertNotEqual($owner(1, 2), (1, 2))
""",
        answer=(
            (
                "    def moved",
                "    def __eq__(self, other):\n        if not isinstance(other, $owner):\n"
                "            return NotImplemented\n        return (self.x, self.y) == (other.x, other.y)\n\n"
                "    def moved",
            ),
        ),
        choices=_choices("owner", "Point", "Spot", "Corner"),
    ),
    Form(
        name="check",
        code='''
def parse_setting(line):
    """The name and the value of a line like "name = value"."""
    name, _, value = line.partition("=")
    return name.strip(), value.strip()
''',
        english="Add a function $name(text) to $file. It reads a text of several lines with parse_setting into a dict "
        "and leaves out empty lines and lines that begin with #.",
        chinese="请在 $file 中添加函数 $name(text)：用 parse_setting 把多行文本读成字典，跳过空行和以 # 开头的行。",
        test="""
    def test_lines(self):
        self.assertEqual($name("a = 1\\nb=two words\\n"), {"a": "1", "b": "two words"})

    def test_what_is_left_out(self):
        self.assertEqual($name("# note = x\\n\\n  \\na = 1"), {"a": "1"})
""",
        answer=(
            (
                "",
                "def $name(text):\n    lines = [line.strip() for line in text.splitlines()]\n"
                '    return dict(parse_setting(line) for line in lines if line and not line.startswith("#"))\n',
            ),
        ),
        choices=_choices("name", "parse_settings", "read_settings", "settings_of"),
    ),
)
