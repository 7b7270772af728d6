"""The commands that only read, with the arguments with which they do: grammars, and checks for a few special commands.

Commands that are not here ask: above all those that run code of the workspace (compilers, test runners, git, which runs
programs that a repository's settings name), that write, reach the network, follow links out of the workspace, or show
the environment. The caller must fix PATH and the environment: nothing holds if the workspace controls them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from codeagent_lsp.tools.permissions.shell.argument_programs import (
    REGEX_BODY,
    check_awk,
    check_find,
    check_ps,
    check_test,
)
from codeagent_lsp.tools.permissions.shell.grammar import Grammar, Unknown, check, check_path, grammar
from codeagent_lsp.tools.permissions.shell.plain import Simple, Word

_SEARCHED = "after-context before-context context max-count regexp glob iglob type type-not max-depth color colour"

_HASHES = grammar("bt", long="binary text tag zero", globs="source")
_GREP = grammar(
    "EFGPicnlLHhovwxqsrbyaUzTI",
    "eABCmg",
    "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case count line-number "
    "files-with-matches files-without-match with-filename no-filename only-matching invert-match word-regexp "
    "line-regexp quiet silent no-messages recursive byte-offset text null color colour",
    "regexp after-context before-context context max-count include exclude exclude-dir binary-files",
    operands="pattern",
    patterns="e regexp",
    filters="include",
    numbers=True,
    globs="source",
)
GRAMMARS: Mapping[str, Grammar] = MappingProxyType(
    {
        # Options are left out where they write, run or follow: `sort -o`, `rg -z` and `--pre`, `fd -x`, `tree -o`,
        # `diff -l`, `ss -K`, `--files0-from`; operands where they set something (`hostname`, `umask`) or are written
        # (`uniq`).
        "ls": grammar(
            "aAbBcCdfFgGhiIklmnNopqQrRsStuUvxXZ1",
            "Iw",
            "all almost-all author classify color directory file-type format full-time group-directories-first "
            "human-readable inode no-group numeric-uid-gid quote-name recursive reverse si size sort time time-style",
            "hide ignore width",
            globs="any",
        ),
        "cat": grammar(
            "AbeEnstTuv", long="number number-nonblank show-all show-ends show-tabs squeeze-blank", globs="source"
        ),
        "head": grammar("qvz", "nc", "quiet silent verbose", "lines bytes", numbers=True, globs="source"),
        "tail": grammar("qvz", "nc", "quiet silent verbose", "lines bytes", numbers=True, globs="source"),
        "wc": grammar("clLmw", long="bytes chars lines max-line-length words", globs="any"),
        **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
        "rg": grammar(
            "icSFwxvlnNHIoqUPs0pb",
            "eABCmgtTdMj",
            "ignore-case count count-matches smart-case fixed-strings word-regexp line-regexp invert-match "
            "files-with-matches files-without-match line-number no-line-number with-filename no-filename no-heading "
            "heading only-matching quiet multiline pcre2 files stats json vimgrep column "
            "trim type-list pretty passthru null sort-files one-file-system crlf multiline-dotall",
            f"{_SEARCHED} sort sortr max-columns max-filesize replace threads",
            operands="pattern",
            patterns="e regexp files type-list",
            filters="g glob iglob",
        ),
        "sort": grammar(
            "bdfgiMhnRrVcCmsuz",
            "kt",
            "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort month-sort "
            "numeric-sort random-sort reverse version-sort check merge stable unique zero-terminated",
            "key field-separator",
        ),
        "uniq": grammar(
            "cdDiuz", "fsw", "count repeated unique ignore-case", "skip-fields skip-chars check-chars", most=1,
            ordered=True
        ),
        "cut": grammar(
            "nsz", "bcdf", "complement only-delimited", "bytes characters delimiter fields output-delimiter"
        ),
        "paste": grammar("sz", "d", "serial", "delimiters"),
        "join": grammar("iz", "12tjaveo", "ignore-case header check-order nocheck-order"),
        "comm": grammar("123z", long="check-order nocheck-order total", long_values="output-delimiter"),
        "tr": grammar("cCdst", long="complement delete squeeze-repeats truncate-set1", operands="text", most=2),
        "nl": grammar("p", "bdfhilnsvw", globs="source"),
        "tac": grammar("br", "s"),
        "rev": grammar(),
        "fold": grammar("bs", "w", "bytes spaces", "width", numbers=True),
        "expand": grammar("i", "t", "initial", "tabs"),
        "unexpand": grammar("a", "t", "all first-only", "tabs"),
        "column": grammar("tx", "s", "table", "separator"),
        "od": grammar("abcdfhilosxv", "AjNtw", "output-duplicates", "address-radix skip-bytes read-bytes format"),
        "hexdump": grammar("bcCdovx", "ns"),
        "strings": grammar("ao", "nte", "all", "bytes radix encoding", responses=True),
        "base64": grammar("di", "w", "decode ignore-garbage", "wrap", most=1),
        "base32": grammar("di", "w", "decode ignore-garbage", "wrap", most=1),
        **dict.fromkeys(("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"), _HASHES),
        "cksum": grammar(),
        "sum": grammar("rs"),
        "shasum": grammar("bt", "a", "binary text", "algorithm"),
        "diff": grammar(
            "abBcdeEinNpqrstTuwyZ",
            "CUWxI",
            "recursive brief report-identical-files unified context side-by-side ignore-case ignore-all-space "
            "ignore-blank-lines ignore-space-change ignore-trailing-space text minimal new-file color normal "
            "no-dereference show-c-function suppress-common-lines strip-trailing-cr",
            "exclude label width ignore-matching-lines",
            most=2,
        ),
        "cmp": grammar("bls", "in", "print-bytes verbose quiet silent", "ignore-initial bytes", most=4),
        "stat": grammar("ft", "c", "file-system terse", "format printf", globs="any"),
        "file": grammar(
            "bikNnrhE0", "F", "brief mime mime-type mime-encoding keep-going no-pad no-dereference", "separator"
        ),
        "du": grammar(
            "abchkmsSx0", "dBt", "all apparent-size bytes total human-readable summarize one-file-system si",
            "max-depth exclude threshold block-size", globs="any"
        ),
        "df": grammar(
            "ahHiklmPT", "Bt", "all human-readable inodes local portability print-type total", "block-size type"
        ),
        "tree": grammar(
            "adfiqNQpugshDFrtcUvnCAJX", "LPI",
            "noreport dirsfirst filesfirst du prune gitignore inodes si sort matchdirs ignore-case", "filelimit",
            attached=False
        ),
        "readlink": grammar(
            "femnqsvz", long="canonicalize canonicalize-existing canonicalize-missing no-newline quiet"
        ),
        "fd": grammar(
            "HIusigFap01q", "tedEc", "hidden no-ignore unrestricted case-sensitive ignore-case glob fixed-strings "
            "absolute-path full-path print0 quiet", "type extension max-depth exclude color", operands="pattern",
            patterns="e extension t type"
        ),
        "iconv": grammar("cl", "ft", "list", "from-code to-code"),
        "shuf": grammar("eirz", "n", "repeat zero-terminated", "head-count input-range", operands="paths"),
        "fmt": grammar("cstu", "wpg", "crown-margin tagged-paragraph uniform-spacing", "width prefix goal"),
        "bc": grammar("lqsw", long="mathlib quiet standard warn"),
        "uptime": grammar("ps", long="pretty since", operands="none"),
        "free": grammar("bhkmgtwl", long="human bytes kibi mebi gibi total wide lohi", operands="none"),
        "lscpu": grammar("J", long="json", operands="none"),
        "lsblk": grammar("aflmnpStJ", "o", "all fs json noheadings", "output", operands="none"),
        "cal": grammar("13ymjsw", operands="text"),
        "locale": grammar("a", long="all-locales", operands="none"),
        "getconf": grammar("a", operands="text"),
        "users": grammar(operands="none"),
        "who": grammar("abHqrsu", operands="none"),
        "umask": grammar("Sp", operands="none"),
        "pgrep": grammar("flaxnoivc", "uUgGPst", "list-full list-name full exact newest oldest", operands="text"),
        "ss": grammar("tulnpa46Hsoex", long="tcp udp listening numeric processes all summary", operands="none"),
        "netstat": grammar("tulnpaers46i", operands="none"),
        "realpath": grammar("emLPqsz", long="canonicalize-existing canonicalize-missing quiet strip no-symlinks"),
        "basename": grammar("az", "s", "multiple zero", "suffix", operands="text"),
        "dirname": grammar("z", long="zero", operands="text"),
        "seq": grammar("w", "fs", "equal-width", "format separator", operands="text", most=3, numbers=True),
        "expr": grammar(operands="text"),
        "numfmt": grammar(
            "z", "d", "grouping header", "from to field format suffix padding", operands="text", numbers=True
        ),
        "factor": grammar(operands="text"),
        "true": grammar(operands="text"),
        "false": grammar(operands="text"),
        ":": grammar(operands="text"),
        "pwd": grammar("LP", operands="none"),
        "cd": grammar(most=1),
        "uname": grammar("asnrvmpio", long="all kernel-name nodename kernel-release machine", operands="none"),
        "arch": grammar(operands="none"),
        "nproc": grammar(long="all", operands="none"),
        "hostname": grammar("IAdfis", operands="none"),
        "ulimit": grammar("aHS", operands="none"),
        "whoami": grammar(operands="none"),
        "id": grammar("ugGnr", long="user group groups name real", operands="none"),
        "groups": grammar(operands="none"),
        "tty": grammar("s", operands="none"),
        "which": grammar("as", operands="text"),
        "type": grammar("aftpP", operands="text"),
        "sleep": grammar(operands="text"),
    }
)  # fmt: skip

_VERSIONED = frozenset(
    """
    git python python3 pip pip3 uv ruff bash rg fd jq node npm npx deno bun rustc cargo go gcc g++ cc c++ clang
    clang++ cmake make ninja java javac ruby gem perl php lua R julia ghc swift zig sed awk gawk grep find tar
    curl wget ssh openssl docker podman kubectl sqlite3 psql mysql vim nvim emacs tmux tree diff
    """.split()  # noqa: SIM905 - a word list reads better as text
)
_VERSION_WORDS = frozenset(
    (
        *(("python", "-V"), ("python3", "-V"), ("python", "-VV"), ("python3", "-VV"), ("pip", "-V"), ("rustc", "-V")),
        *(("cargo", "-V"), ("uv", "-V"), ("node", "-v"), ("npm", "-v"), ("ruby", "-v"), ("perl", "-v"), ("php", "-v")),
        *(("lua", "-v"), ("bun", "-v"), ("java", "-version"), ("javac", "-version"), ("go", "version")),
        *(("openssl", "version"), ("zig", "version"), ("ssh", "-V"), ("tmux", "-V"), ("rustc", "-vV")),
    )
)
_PRINTF = re.compile(r"(?:[^%]|%%|%[-+ #0]*\d{0,4}(?:\.\d{1,4})?[bcdiosqxXuEeFfGg])*")
_XXD_FLAGS = frozenset(("-a", "-b", "-e", "-E", "-i", "-p", "-u"))
_XXD_VALUE = re.compile(r"-[cgls]\d*")
_AWK_VALUE = re.compile(r"\w+=[^\n]*")
# Taken out before the search: the field `.env` is not the function `env`.
_JQ_FIELD = re.compile(r"(?<!\.)\.[A-Za-z_]\w*")
_JQ_OUT = re.compile(
    r"\b(?:env|import|include|modulemeta|input_filename|get_search_list|halt_error|debug|stderr)\b"
    r"|\$(?:ENV|__(?!loc__)|[\s#])"  # blanks and comments may stand behind the sign
)
_JQ = grammar(
    "rcSnseMCajR",
    long="raw-output compact-output sort-keys null-input slurp exit-status tab raw-input join-output color-output "
    "monochrome-output ascii-output stream",
    operands="pattern",
)
_DATE = grammar("uRI", "d", "utc universal iso-8601 rfc-email rfc-3339", "date", operands="text", most=1)
_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/{REGEX_BODY}+/I?)"
_RANGE = rf"(?:{_ADDRESS}(?:[ ]*,[ ]*(?:{_ADDRESS}|[+~]\d+))?[ ]*(?:![ ]*)?)?"
_REPLACEMENT = r"(?:\\[^\n]|[^\\/\n])*"
# With five separators, and without the flags `e` and `w`, which run a command and write a file.
_SUBSTITUTIONS = "|".join(
    f"s{re.escape(mark)}{REGEX_BODY.replace('/', re.escape(mark))}+{re.escape(mark)}"
    rf"{_REPLACEMENT.replace('/', re.escape(mark))}{re.escape(mark)}[gpiIm0-9]*"
    for mark in "/|,@:"
)
# Without `e`, `r`, `R`, `w` and `W`.
_COMMAND = re.compile(rf"[ \n;]*{_RANGE}(?:[pqd=DNPGHhgxnl]|{_SUBSTITUTIONS})[ ]*(?=[;\n]|$)")
_MAX_CHARS, _MAX_COMMANDS = 500, 20


def check_harmless(command: Simple) -> None:
    """Check that a command is known to do nothing but read. Unknown, with the reason, if it is not."""
    name, arguments = command.words[0], command.words[1:]
    for source in command.inputs:
        check_path(source, globs="none")
    if name.written != name.value:
        raise Unknown("The command's name is quoted.")
    if len(arguments) == 1 and asks_version(name.value, arguments[0].value):
        return
    if (own := _OWN.get(name.value)) is not None:
        own(arguments)
    elif (rules := GRAMMARS.get(name.value)) is not None:
        check(rules, arguments)
    else:
        raise Unknown(f"{name.value!r} is not known to be harmless.")


def asks_version(name: str, option: str) -> bool:
    """Return whether a command only asks a program for its version."""
    return (option == "--version" and name in _VERSIONED) or (name, option) in _VERSION_WORDS


def _cd(arguments: Sequence[Word]) -> None:
    check(GRAMMARS["cd"], arguments)
    # Home, or the folder before, of which nothing is known.
    if [word.value for word in arguments] in ([], ["-"], ["--"], ["--", "-"]):
        raise Unknown("It names a place outside the workspace.")


def _echo(arguments: Sequence[Word]) -> None:
    for word in arguments:
        if word.glob:
            check_path(word, globs="source")


def _printf(arguments: Sequence[Word]) -> None:
    """Refuse `-v` and `%n`: both set a variable, whose subscript can run a command."""
    if not arguments or arguments[0].value.startswith("-") or not _PRINTF.fullmatch(arguments[0].value):
        raise Unknown("Its format is not known to be harmless.")
    _echo(arguments)


def _sed(arguments: Sequence[Word]) -> None:
    """Check each script of `sed`: those behind `-e`, or else the first operand."""
    words, scripts = list(arguments), []
    while words and words[0].value in ("-n", "-E", "-r", "-s", "-u", "-z", "-ne", "-nE", "-nr", "-En", "-e"):
        if words.pop(0).value in ("-e", "-ne"):
            scripts += words[:1]
            del words[:1]
    if not scripts:
        scripts = words[:1]
        del words[:1]
    for script in scripts or [Word("", "")]:
        check_sed(script.value)
    check(Grammar(), words)


def _awk(arguments: Sequence[Word]) -> None:
    """Check the program of `awk`, behind separators and variables that are set."""
    words = list(arguments)
    while words and words[0].value.startswith(("-F", "-v")):
        option = words.pop(0).value
        value = option[2:] or (words.pop(0).value if words else "")
        if not value or (option.startswith("-v") and not _AWK_VALUE.fullmatch(value)):
            raise Unknown("The value of an option is missing.")
    if not words or words[0].glob or words[0].value.startswith("-"):
        raise Unknown("The awk program is missing.")
    check_awk(words[0].value)
    check(Grammar(globs="source"), words[1:])


def _xxd(arguments: Sequence[Word]) -> None:
    """Check `xxd`, which takes no option after an operand, and writes its second operand."""
    words = [word.value for word in arguments]
    while words and (words[0] in _XXD_FLAGS or _XXD_VALUE.fullmatch(words[0])):
        option = words.pop(0)
        if _XXD_VALUE.fullmatch(option) and len(option) == 2 and not (words and words.pop(0).isdecimal()):
            raise Unknown("The value of an option is missing.")
    check(Grammar(most=1, ordered=True), arguments[len(arguments) - len(words) :])


def _date(arguments: Sequence[Word]) -> None:
    """Refuse an operand that is no format: it sets the clock."""
    check(_DATE, arguments)
    values = ("-d", "--date")
    for before, word in zip(("", *(each.value for each in arguments)), arguments, strict=False):
        if not word.value.startswith(("+", "-")) and before not in values:
            raise Unknown("It may set the clock.")


def _jq(arguments: Sequence[Word]) -> None:
    words = list(arguments)
    if any(word.value == "--" for word in words):  # what follows are files, even if it is called `--arg`
        raise Unknown("The option -- is not known to be harmless.")
    while (option := next((word for word in words if word.value in ("--arg", "--argjson")), None)) is not None:
        place = words.index(option)
        if any(word.glob for word in words[place + 1 : place + 3]):
            raise Unknown("It names files by a pattern.")
        del words[place : place + 3]
    check(_JQ, words)
    if any(_JQ_OUT.search(_JQ_FIELD.sub("", word.value)) for word in words):
        raise Unknown("Its filter may read more than its files.")


def _history(arguments: Sequence[Word]) -> None:
    """Accept a number of lines at most: options change the history, or the file that it is kept in."""
    check(Grammar(operands="text", most=1), arguments)
    if not all(word.value.isascii() and word.value.isdecimal() for word in arguments):
        raise Unknown("Only a number of lines is known to be harmless.")


def _bracket(arguments: Sequence[Word]) -> None:
    if not arguments or arguments[-1].value != "]":
        raise Unknown("The test has no end.")
    check_test(arguments[:-1])


def _command(arguments: Sequence[Word]) -> None:
    if not arguments or arguments[0].value not in ("-v", "-V"):
        raise Unknown("It runs another command.")
    check(grammar(operands="text"), arguments[1:])


_OWN: Mapping[str, Callable[[Sequence[Word]], None]] = MappingProxyType(
    {
        "cd": _cd,
        "echo": _echo,
        "printf": _printf,
        "sed": _sed,
        **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
        "ps": check_ps,
        "date": _date,
        "xxd": _xxd,
        "jq": _jq,
        "history": _history,
        "command": _command,
        "find": check_find,
        "test": check_test,
        "[": _bracket,
    }
)


# The check that a `sed` script only selects, changes and prints lines, and writes or runs nothing. Pure functions.


def check_sed(script: str) -> None:
    """Check that a `sed` script only selects, changes and prints lines: it writes no files and runs no commands.
    Unknown, with the reason, if that is not certain, as for an empty or a very long script.
    """
    place = count = 0
    while place < len(script.rstrip(" ;\n")):
        match = _COMMAND.match(script, place) if len(script) <= _MAX_CHARS and count < _MAX_COMMANDS else None
        if match is None:
            raise Unknown("Only `sed` that selects, changes and prints lines is known to be harmless.")
        place, count = match.end(), count + 1
    if not count:
        raise Unknown("The `sed` script is empty.")
