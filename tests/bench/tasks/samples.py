"""Functions of the standard library that are good to break, with calls that show what they do. Calls only, no results.

Results are recorded from the running Python (`recording.py`). The size tells in which surroundings a function is used:
`s` alone with what it needs, `m` in a file of 80 to 200 lines, `l` in its whole module.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """A function or method of a module, the sizes it is good for, and calls of it as expressions."""

    module: str
    name: str
    sizes: str
    calls: tuple[str, ...]


def _read(table: str) -> tuple[Sample, ...]:
    """`module name sizes`, then one indented call a line."""
    samples: list[Sample] = []
    for line in filter(str.strip, table.splitlines()):
        if not line.startswith(" "):
            module, name, sizes = line.split()
            samples.append(Sample(module, name, sizes, ()))
        else:
            last = samples[-1]
            samples[-1] = Sample(last.module, last.name, last.sizes, (*last.calls, line.strip()))
    return tuple(samples)


SAMPLES = _read(r"""
textwrap dedent sm
    dedent("  one\n  two\n")
    dedent("    one\n      two\n\n    three\n")
    dedent("one\n  two\n")
    dedent("\tone\n\t  two\n")
    dedent("   \n  a\n")
textwrap indent sm
    indent("one\ntwo\n", "> ")
    indent("one\n\ntwo", "  ")
    indent("a\n\nb\n", "- ", lambda line: True)
    indent("", "x")
textwrap wrap l
    wrap("The quick brown fox jumped over the lazy dog", 15)
    wrap("a-very-long-hyphenated-word here", 10)
    wrap("one  two   three", 7)
    wrap("supercalifragilistic", 6)
    wrap("first second third fourth", 12, max_lines=2)
    wrap("tab\tseparated words here", 12, initial_indent="* ", subsequent_indent="  ")
textwrap TextWrapper._wrap_chunks l
    TextWrapper(width=12).wrap("some words that need three lines")
    TextWrapper(width=10, max_lines=2).wrap("one two three four five six")
    TextWrapper(width=8, break_long_words=False).wrap("extraordinary day")
    TextWrapper(width=11, initial_indent="- ").wrap("a list of many things")
    TextWrapper(width=20, max_lines=1, placeholder="~").wrap("cut after the first line of text")
shlex quote sm
    quote("plain")
    quote("two words")
    quote("it's")
    quote("")
shlex split l
    split("a b c")
    split("a 'b c' d")
    split('say "x y" \'z\'')
    split("one # two")
    split("one # two", comments=True)
    split("a\\ b c")
    split("it 'never ends")
shlex shlex.read_token l
    list(shlex("a b;c"))
    list(shlex("x = 'one two' # note\ny"))
    list(shlex("a&&b | c", punctuation_chars=True))
    list(shlex('"in" out'))
bisect bisect_left sm
    bisect_left([1, 2, 2, 3], 2)
    bisect_left([1, 2, 2, 3], 0)
    bisect_left([1, 2, 2, 3], 9)
    bisect_left([1, 3, 5, 7, 9], 7, 1, 4)
    bisect_left([], 1)
    bisect_left([1, 2], 1, -1)
bisect bisect_right sm
    bisect_right([1, 2, 2, 3], 2)
    bisect_right([1, 2, 2, 3], 0)
    bisect_right([1, 2, 2, 3], 9)
    bisect_right(["a", "bb", "cccc"], 2, key=len)
    bisect_right([], 1)
    bisect_right([1, 2], 1, -1)
heapq nsmallest ml
    nsmallest(2, [5, 1, 4, 2])
    nsmallest(1, ["pear", "fig", "apple"], key=len)
    nsmallest(3, ["pear", "fig", "apple", "kiwi"], key=len)
    nsmallest(0, [1, 2])
    nsmallest(9, [3, 1, 2])
heapq nlargest ml
    nlargest(2, [5, 1, 4, 2])
    nlargest(1, ["pear", "fig", "apple"], key=len)
    nlargest(3, ["pear", "fig", "apple", "kiwi"], key=len)
    nlargest(0, [1, 2])
    nlargest(9, [3, 1, 2])
heapq merge ml
    list(merge([1, 4, 7], [2, 3, 9]))
    list(merge([7, 4], [9, 3, 1], reverse=True))
    list(merge(["a", "ccc"], ["bb"], key=len))
    list(merge([1], [], [0]))
    list(merge())
statistics median l
    median([1, 3, 5])
    median([1, 3, 5, 7])
    median([4, 1, 3])
    median([])
statistics median_low l
    median_low([1, 3, 5])
    median_low([7, 1, 5, 3])
    median_low([2])
    median_low([])
statistics quantiles l
    quantiles([1, 2, 3, 4, 5, 6, 7])
    quantiles([105, 129, 87, 86, 111, 111, 89, 81, 108], n=3)
    quantiles([1, 2, 3, 4], n=2, method="inclusive")
    quantiles([1, 2], n=0)
statistics multimode sml
    multimode("aabbbbccddddeeffffgg")
    multimode([1, 2, 3])
    multimode("")
statistics median_grouped l
    median_grouped([52, 52, 53, 54])
    median_grouped([1, 3, 3, 5, 7])
    median_grouped([1, 2, 2, 3, 4, 4, 4, 4, 4, 5], interval=2)
statistics harmonic_mean l
    harmonic_mean([40, 60])
    harmonic_mean([40, 60], weights=[5, 30])
    harmonic_mean([10, 0])
    harmonic_mean([10])
    harmonic_mean([1, -1])
statistics variance l
    variance([2.75, 1.75, 1.25, 0.25, 0.5, 1.25, 3.5])
    variance([1, 2, 3, 4])
    variance([1, 3], 2)
    variance([1])
fnmatch fnmatchcase ml
    [fnmatchcase(name, "*.py") for name in ("a.py", "a.pyc", ".py", "b.PY")]
    [fnmatchcase(name, "[a-c]?") for name in ("a1", "d1", "c", "bb")]
    [fnmatchcase(name, "[!x]*y") for name in ("xy", "ay", "azy", "y")]
    [fnmatchcase(name, "a*b*c") for name in ("abc", "aXbYc", "ac")]
    [fnmatchcase(name, "a[") for name in ("a[", "a")]
fnmatch translate sml
    translate("*.txt")
    translate("a?[bc]")
    translate("[!a-c]*x*")
    translate("**a[")
posixpath join ml
    join("a", "b")
    join("a/", "b", "c")
    join("a", "/b", "c")
    join("", "x")
    join("a", "")
posixpath split ml
    split("/usr/lib/file")
    split("file")
    split("/")
    split("//a//b")
    split("a/")
posixpath commonpath l
    commonpath(["/usr/lib", "/usr/local/lib"])
    commonpath(["a/b/c", "a/b/d", "a/b"])
    commonpath(["a", "b"])
    commonpath(["/a", "b"])
    commonpath([])
posixpath relpath l
    relpath("/a/b/c", "/a/d")
    relpath("/a/b", "/a/b")
    relpath("/a", "/a/b/c")
    relpath("")
genericpath commonprefix sm
    commonprefix(["flower", "flow", "flight"])
    commonprefix(["same", "same"])
    commonprefix([])
    commonprefix(["a", "b"])
    commonprefix([[1, 2, 3], [1, 2, 4]])
genericpath _splitext sm
    _splitext("a/b.tar.gz", "/", None, ".")
    _splitext(".profile", "/", None, ".")
    _splitext("a.b/c", "/", None, ".")
    _splitext("x/..y.z", "/", None, ".")
    _splitext("a.b\\c.d", "\\", "/", ".")
ntpath splitdrive ml
    splitdrive("c:\\dir\\file")
    splitdrive("\\\\host\\share\\dir")
    splitdrive("dir\\file")
    splitdrive("//host/share/x")
    splitdrive("\\\\host")
string capwords sm
    capwords("the quick  brown fox")
    capwords("one-two-three", "-")
    capwords("  MIXED case ")
string Template.substitute ml
    Template("$who likes $what").substitute(who="tim", what="tea")
    Template("${a}b costs $$5").substitute({"a": 1})
    Template("$a $b").substitute({"a": 1, "b": 2}, b=3)
    Template("$missing").substitute()
colorsys rgb_to_hsv sm
    rgb_to_hsv(0.2, 0.4, 0.4)
    rgb_to_hsv(1.0, 0.5, 0.25)
    rgb_to_hsv(0.25, 1.0, 0.5)
    rgb_to_hsv(0.5, 0.5, 0.5)
    rgb_to_hsv(0.25, 0.5, 1.0)
colorsys hsv_to_rgb sm
    hsv_to_rgb(0.5, 0.5, 0.4)
    [hsv_to_rgb(hue, 0.5, 1.0) for hue in (0.0, 0.25, 0.75)]
    hsv_to_rgb(0.3, 0.0, 0.7)
    hsv_to_rgb(0.875, 1.0, 1.0)
colorsys rgb_to_hls sm
    rgb_to_hls(0.2, 0.4, 0.4)
    rgb_to_hls(1.0, 0.5, 0.75)
    rgb_to_hls(0.25, 1.0, 0.5)
    rgb_to_hls(0.5, 0.5, 0.5)
calendar leapdays sm
    leapdays(2000, 2001)
    leapdays(1896, 1904)
    leapdays(1999, 2024)
    leapdays(2001, 2001)
calendar monthrange l
    monthrange(2024, 2)
    monthrange(2023, 2)
    monthrange(1999, 12)
    monthrange(2024, 13)
calendar timegm sm
    timegm((1970, 1, 1, 0, 0, 0))
    timegm((2000, 2, 29, 12, 30, 15))
    timegm((2024, 12, 31, 23, 59, 59))
calendar Calendar.itermonthdays l
    list(Calendar().itermonthdays(2024, 2))
    list(Calendar(6).itermonthdays(2023, 10))
calendar Calendar.monthdayscalendar l
    Calendar().monthdayscalendar(2024, 2)
    Calendar(6).monthdayscalendar(2023, 10)
calendar TextCalendar.formatmonth l
    TextCalendar().formatmonth(2024, 2)
    TextCalendar(6).formatmonth(2023, 10, 3)
    TextCalendar().formatmonth(2024, 5, 4, 2)
quopri needsquoting sm
    [needsquoting(char, False, False) for char in (b"a", b"=", b" ", b"_", b"~", b"\x7f")]
    [needsquoting(char, True, True) for char in (b"a", b"\t", b" ", b"_")]
    [needsquoting(char, False, True) for char in (b"_", b" ", b"\n")]
html escape sm
    escape("<a href='x'>")
    escape('"quoted" & more')
    escape('"quoted" & more', quote=False)
ipaddress _count_righthand_zero_bits sm
    _count_righthand_zero_bits(8, 32)
    _count_righthand_zero_bits(0, 32)
    _count_righthand_zero_bits(7, 32)
    _count_righthand_zero_bits(64, 4)
base64 b16decode sml
    b16decode(b"0AFF")
    b16decode(b"0aff", casefold=True)
    b16decode(b"0aff")
base64 b85encode sml
    b85encode(b"hello world")
    b85encode(b"")
    b85encode(b"abc", pad=True)
    b85encode(bytes(8))
base64 a85encode ml
    a85encode(b"hello world")
    a85encode(b"some longer text here", wrapcol=10)
    a85encode(b"    ", foldspaces=True)
    a85encode(b"abc", adobe=True)
    a85encode(bytes(4))
base64 a85decode ml
    a85decode(b"BOu!rD]j7BEbo7")
    a85decode(b"<~@:E^~>", adobe=True)
    a85decode(b"y", foldspaces=True)
    a85decode(b"z")
    a85decode(b"x!")
base64 b32decode l
    b32decode(b"NBSWY3DP")
    b32decode(b"ME======")
    b32decode(b"me======", casefold=True)
    b32decode(b"M1======", map01=b"L")
    b32decode(b"MEX")
urllib.parse urljoin l
    urljoin("http://a/b/c/d", "../e")
    urljoin("http://a/b/c/d", "/e")
    urljoin("http://a/b/c/d?x", "?y")
    urljoin("http://a/b/c/d", "../../../g")
    urljoin("http://a/b/", "./g/.")
    urljoin("", "x")
    urljoin("http://a/b", "//other/c")
urllib.parse parse_qsl l
    parse_qsl("a=1&b=2")
    parse_qsl("a=&b=2")
    parse_qsl("a=&b=2", keep_blank_values=True)
    parse_qsl("a+b=%20x")
    parse_qsl("a", strict_parsing=True)
    parse_qsl("a=1&b=2", max_num_fields=1)
urllib.parse urlencode l
    urlencode({"a": 1, "b": "x y"})
    urlencode([("a", [1, 2])], doseq=True)
    urlencode({"a": "ü"})
    urlencode([("a", b"&")])
urllib.parse unquote l
    unquote("a%20b")
    unquote("%C3%BCber")
    unquote("100%")
    unquote("%zz%41")
urllib.parse _splitnport sm
    _splitnport("host:80")
    _splitnport("host")
    _splitnport("host", 21)
    _splitnport("host:", 21)
    _splitnport("host:x")
urllib.parse quote_from_bytes l
    quote_from_bytes(b"abc def")
    quote_from_bytes(b"a/b&c", safe="&")
    quote_from_bytes(b"")
    quote_from_bytes(b"\xff~")
fractions Fraction.limit_denominator l
    str(Fraction("3.1415926535897932").limit_denominator(1000))
    str(Fraction(4321, 8765).limit_denominator(10000))
    str(Fraction(-13, 17).limit_denominator(5))
    str(Fraction(1, 3).limit_denominator(0))
fractions Fraction.__round__ l
    [round(Fraction(number, 2)) for number in (-3, -1, 1, 3, 5)]
    str(round(Fraction(22, 7), 2))
    str(round(Fraction(1234, 1), -2))
functools cmp_to_key sml
    sorted([3, 1, 2], key=cmp_to_key(lambda a, b: b - a))
    max(["a", "ccc", "bb"], key=cmp_to_key(lambda a, b: len(a) - len(b)))
    cmp_to_key(lambda a, b: a - b)(1) <= cmp_to_key(lambda a, b: a - b)(1)
functools _c3_merge sm
    _c3_merge([["a", "b"], ["a", "c"], ["b", "c"]])
    _c3_merge([[1, 3], [2, 3], [1, 2]])
    _c3_merge([])
    _c3_merge([[1, 2], [2, 1]])
operator indexOf sml
    indexOf("abcb", "b")
    indexOf([1, 2, 3], 3)
    indexOf([1], 2)
operator countOf sml
    countOf("banana", "a")
    countOf([1, 2, 1], 1)
    countOf([], 1)
operator length_hint sl
    length_hint([1, 2])
    length_hint(iter([1, 2, 3]))
    length_hint(5, 7)
    length_hint([], -1)
    length_hint([], "x")
email._parseaddr parsedate_tz ml
    parsedate_tz("Mon, 20 Nov 1995 19:12:08 -0500")
    parsedate_tz("20 Nov 95 19:12")
    parsedate_tz("Sun, 1 Feb 2004 07:05:09 GMT")
    parsedate_tz("1 Mar 2001 10:00:00 +0130")
    parsedate_tz("nonsense")
email._parseaddr AddrlistClass.getaddress l
    AddrlistClass("Ann B. <ann@example.org>").getaddresslist()
    AddrlistClass("ann@example.org (Ann), bob@example.org").getaddresslist()
    AddrlistClass('"Last, First" <x@example.org>').getaddresslist()
    AddrlistClass("group: a@example.org, b@example.org;").getaddresslist()
email._parseaddr quote s
    quote('say "x"')
    quote("back\\slash")
    quote("plain")
email.quoprimime decode ml
    decode("a=20b")
    decode("one =\ntwo")
    decode("x=zz\ny ")
    decode("")
email.quoprimime header_encode ml
    header_encode(b"hello world")
    header_encode(b"")
    header_encode(b"caf\xe9 = 1", "utf-8")
http.cookies _unquote l
    _unquote('"a b"')
    _unquote("plain")
    _unquote('"x\\"y"')
    _unquote('"\\054z"')
http.cookiejar is_HDN s
    [is_HDN(text) for text in ("a.example", "1.2.3.4", "", ".a", "a.")]
http.cookiejar join_header_words sm
    join_header_words([[("text/plain", None), ("charset", "utf-8")]])
    join_header_words([[("a", "x y")], [("b", 'q"z')]])
    join_header_words([])
http.cookiejar split_header_words sm
    split_header_words(['foo="bar"; port="80,81"; discard, bar=baz'])
    split_header_words(["text/html; charset=utf-8"])
    split_header_words(['Basic realm="a\\"b"'])
http.cookiejar iso2time m
    iso2time("1994-02-03 14:15:29 -0100")
    iso2time("1994-02-03")
    iso2time("19940203T141529Z")
    iso2time("x")
http.cookiejar http2time m
    http2time("Wed, 09 Feb 1994 22:23:32 GMT")
    http2time("09 Feb 1994 22:23:32 GMT")
    http2time("09-Feb-94 22:23 PM")
    http2time("nonsense")
gettext c2py ml
    [c2py("n != 1")(number) for number in (0, 1, 2)]
    [c2py("n%10==1 && n%100!=11 ? 0 : n%10>=2 ? 1 : 2")(number) for number in (1, 11, 22, 30)]
    c2py("n>1 || (n")
    c2py("!n")(0)
copy deepcopy l
    deepcopy([1, [2, 3], {"a": (4, [5])}])
    [(a is b) for a, b in [(lambda x: (x[0], deepcopy(x)[0]))([[1]])]]
    (lambda x: (deepcopy(x)[0] is deepcopy(x)[1]))([[1]] * 2)
    (lambda y: y[0] is y[1])(deepcopy([[1]] * 2))
pprint pformat l
    pformat({"name": "x" * 30, "values": list(range(12))}, width=40)
    pformat([1, [2, [3, [4]]]], depth=2)
    pformat((1,))
    pformat({"b": 1, "a": 2}, sort_dicts=False)
pprint PrettyPrinter._format_items l
    pformat(["some text", "another text", "third"], width=20)
    pformat(list(range(30)), width=30, compact=True)
    pformat(("a" * 10, "b" * 10, "c" * 10), width=20)
graphlib TopologicalSorter.static_order m
    list(TopologicalSorter({"d": ["b", "c"], "b": ["a"], "c": ["a"]}).static_order())
    list(TopologicalSorter({}).static_order())
    list(TopologicalSorter({1: [2], 2: []}).static_order())
json.decoder py_scanstring ml
    py_scanstring('abc" rest', 0)
    py_scanstring('a\\n\\u0041"', 0)
    py_scanstring('\\ud83d\\ude00"x', 0)
    py_scanstring("never ends", 0)
    py_scanstring('x\ty"', 0, False)
cmd Cmd.parseline l
    Cmd().parseline("say hello world")
    Cmd().parseline("? topic")
    Cmd().parseline("!run it")
    Cmd().parseline("   ")
    Cmd().parseline("do_it2=5")
getopt getopt ml
    getopt(["-a", "x", "rest"], "a:b")
    getopt(["-ab", "--", "-c"], "abc")
    getopt(["--name=x", "--all"], "", ["name=", "all"])
    getopt(["--na", "x"], "", ["name="])
    getopt(["-", "-a"], "a")
getopt gnu_getopt m
    gnu_getopt(["x", "-a", "y"], "ab:")
    gnu_getopt(["x", "-b", "1", "--", "-a"], "ab:")
    gnu_getopt(["x", "-a"], "+a")
    gnu_getopt(["-a", "x", "--all"], "a", ["all"])
encodings.punycode punycode_encode sm
    punycode_encode("bücher")
    punycode_encode("abc")
    punycode_encode("München-Ost")
    punycode_encode("他们为什么不说中文")
encodings.punycode adapt sm
    adapt(100, True, 5)
    adapt(2000, False, 6)
    adapt(100000, False, 7)
nturl2path url2pathname sm
    url2pathname("///C|/foo/bar/spam.foo")
    url2pathname("////host/share/dir")
    url2pathname("//a/b%20c")
xml.sax.saxutils unescape s
    unescape("a &lt; b &amp;&amp; c &gt; d")
    unescape("&amp;lt;")
    unescape("&hi;", {"&hi;": "hello"})
xml.sax.saxutils quoteattr sm
    quoteattr("plain")
    quoteattr('say "x"')
    quoteattr("it's \"x\"")
    quoteattr("a\nb")
unittest.util sorted_list_difference sm
    sorted_list_difference([1, 2, 3, 5], [2, 4, 5])
    sorted_list_difference([1, 1, 2], [2, 2, 3])
    sorted_list_difference([], [1])
    sorted_list_difference([4, 6], [])
unittest.util unorderable_list_difference s
    unorderable_list_difference([3, 1], [1, 2])
    unorderable_list_difference([], [1])
unittest.util _common_shorten_repr m
    _common_shorten_repr("x" * 90 + "a" + "y" * 90, "x" * 90 + "b" + "y" * 90)
    _common_shorten_repr("ab", "ac")
inspect cleandoc sm
    cleandoc("one\n    two\n      three\n")
    cleandoc("\n\n  first\n  second\n\n")
    cleandoc("single")
    cleandoc("a\n\tb\n")
datetime _ord2ymd sm
    _ord2ymd(1)
    _ord2ymd(365 * 4 + 1)
    _ord2ymd(146097)
    _ord2ymd(738000)
datetime _isoweek1monday sm
    [_isoweek1monday(year) for year in (1999, 2004, 2008, 2020, 2024)]
wsgiref.util shift_path_info sm
    (lambda env: (shift_path_info(env), env))({"SCRIPT_NAME": "/a", "PATH_INFO": "/b/c"})
    (lambda env: (shift_path_info(env), env))({"SCRIPT_NAME": "", "PATH_INFO": "/x"})
    (lambda env: (shift_path_info(env), env))({"SCRIPT_NAME": "/a", "PATH_INFO": ""})
    (lambda env: (shift_path_info(env), env))({"SCRIPT_NAME": "", "PATH_INFO": "/a//b/"})
""")
