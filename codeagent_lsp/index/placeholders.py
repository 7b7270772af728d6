"""Finds placeholders in a model's code: lines such as `# ... rest of the code` that stand for code it left out.

A placeholder counts only as often as the new text has it more than the old one, as a whole line; comments are read in
the languages of `placeholder_words.py`. `left_out` judges what a model gives for the whole of
something; `refuse_left_out` any change, and there only lines in whose place others go. Pure functions. Not here:
whether a text is whole (`direct/completeness.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.comments import comment_of, is_comment_in, is_document
from codeagent_lsp.index.placeholder_words import may_say_left_out, may_say_left_out_in_english, says_left_out
from codeagent_lsp.workspace.edits.line_matching import runs_of
from codeagent_lsp.workspace.text.position import split_lines, with_newlines

_BRACKETED = re.compile(r"[(\[<{](?P<said>.*\s.*)[)\]>}]")
_ASIDE = re.compile(r"[*_]{0,2}(?:\[[^\[\]]+\]|\([^()]+\)|<[^<>/]+>|\{[^{}]+\})[*_.]{0,3}")
_DOTS = re.compile(r"^[ \t(\[{<]*(?:\.{3,}|\u2026)")
# A line of signs alone, such as `[...]`, `⋮` or `--- 8< ---`, and a state in brackets: code has them, too.
_CUT = re.compile(
    r"[-\s=~_*#<>()\[\]{}]*(?:\.{3,}|\. \. \.|[\u2026\u22ee\u22ef\ufe19]|8<|\u2702)[-\s=~_*#.<>()\[\]{}]*"
    r"|[<*]{1,2}(?:unchanged|unmodified|omitted|truncated|snip(?:ped)?|skipped|elided)[>*]{1,2}",
    re.IGNORECASE,
)
_TRAILING = re.compile(r"\s(?://|#|--|/\*|<!--)[ \t]*(?:\.{3,}|\u2026)(?P<said>[^\n]*)")
AROUND = " \t.,:()[]{}<>*=~#|/-\u2026\u3002\uff0c\uff1a\uff08\uff09\u3010\u3011"
_NOUN = (
    r"(?:code|functions?|methods?|implementations?|class(?:es)?|file|logic|body|imports?|tests?|routes?|handlers?"
    r"|statements?|definitions?|helpers?|module|script|component)"
)
_WHOLE = (
    r"(?:document|page|config(?:uration)?|settings|styles(?:heet)?|template|text|section|program|contents?|list|query)"
)
_ENTRIES = r"(?:sections?|settings|rules|styles|resources|properties|options|elements|entries|lines|jobs|steps|targets)"
_STATE = (
    r"(?:(?:remains?|stays?|is|are|left|kept|goes|go)\s+)?(?:unchanged|untouched|unaltered|intact|omitted|not shown"
    r"|continues?|as[ -]is|(?:the )?same(?: as (?:before|above))?|as before|as above|as in the original|here|above"
    r"|below)(?:\s+for brevity)?"
)
# `rest of the code`, `keep the existing imports`, `other methods remain unchanged`, `same as above`.
_PHRASE = re.compile(
    rf"(?:(?:keep|leave|insert|put|add|all|your|the)\s+)*"
    rf"(?:rest|remainder|remaining|existing|previous|other|original|unchanged)(?:\s+(?:of|the|your|this|its))*"
    rf"(?:\s+\w+){{0,2}}?\s+{_NOUN}(?:\s+{_STATE})?"
    rf"|(?:\w+\s+){{0,3}}{_NOUN}\s+(?:(?:remains?|stays?|is|are|left|kept)\s+)?"
    rf"(?:unchanged|untouched|unaltered|omitted|(?:the )?same|(?:same )?as before|not shown"
    rf"|as in the (?:original|existing|old)(?: (?:code|file|version))?)(?:\s+for brevity)?"
    rf"|(?:everything else|(?:the )?rest)(?:\s+{_STATE})?"
    rf"|(?:the )?(?:rest|remainder) of (?:(?:the|your|this|its) )?(?:\w+ )?{_WHOLE}(?:\s+{_STATE})?"
    rf"|(?:(?:the|all|your)\s+)*(?:rest of|remaining|other|existing)\s+(?:\w+\s+)?{_ENTRIES}\s+"
    r"(?:(?:remains?|stays?|is|are|left|kept)\s+)?(?:unchanged|omitted|not shown|the same|as before)(?: for brevity)?"
    rf"|(?:unchanged|omitted)(?: for brevity)?|(?:the )?same as (?:before|above)|as before",
    re.IGNORECASE,
)
# So much is said in ordinary comments, too: it stands for lines only where more of them go than come.
_LOOSE = re.compile(
    r"(?:(?:keep|leave|insert|put|add|all|your|the)\s+)*"
    r"(?:rest|remainder|remaining|existing|previous|other|original|unchanged)(?:\s+(?:of|the|your|this|its))*"
    r"(?:\s+\w+){0,2}?\s+(?:contents?|text|markup|html|css|xml|json|yaml|paragraphs?|parts?|stuff|things)"
    rf"(?:\s+{_STATE})?"
    rf"|(?:keep|leave)\s+(?:(?:it|this|everything|all|the\s+\w+)\s+)?(?:{_STATE}|as\s+it\s+(?:is|was))"
    r"|(?:contents?|text|markup|lines?|everything)\s+(?:(?:remains?|stays?|is|are|left|kept|continues?)\s+)?"
    r"(?:unchanged|omitted|not shown|the same|as before|here|snipped|truncated)(?:\s+for brevity)?"
    r"|(?:\w+\s+){0,2}(?:remains?|stays?|continues?)\s+(?:here|unchanged|as[ -]is|as before)",
    re.IGNORECASE,
)
# These say as often what a program does: they stand for lines only where nothing else comes.
_WEAK = re.compile(
    r"(?:\w+\s+){0,2}(?:goes|go)\s+here|no changes?(?:\s+(?:here|below|above|needed))?|unmodified|as[ -]is"
    r"|snip(?:ped)?|truncated|and so on",
    re.IGNORECASE,
)
_KEPT = r"(?:其他|其它|其余|剩余|剩下|余下|原有|原来|原始|原先|之前|现有|已有)"
_PART = r"(?:代码|函数|方法|逻辑|部分|实现|导入|类)"
_LEFT = r"(?:保持不变|维持不变|保持原样|不变|不动|不作修改|不做修改|无需修改|没有变化|省略|略|同上|照旧|与之前相同)"
# `其余代码保持不变`, `这里是原有的函数`, `省略其他部分`.
_CHINESE = re.compile(
    rf"(?:这里|此处|以下|以上|下面|上面|保留|保持|是|为|放|有|所有|全部)*{_KEPT}(?:的|所有|全部)*{_PART}+"
    rf"(?:均|都|也|在这里|在此|等)*{_LEFT}?"
    rf"|(?:\w|[ .`])*(?:{_PART}|内容|属性|功能|测试|路由|配置)(?:均|都|也)*{_LEFT}"
    rf"|(?:这里|此处|{_KEPT})?(?:均|都)?{_LEFT}(?:若干|其他|其余)*{_PART}*"
)
_LOOSE_CHINESE = re.compile(
    rf"(?:这里|此处|以下|以上|下面|上面|保留|保持|是|为|所有|全部)*{_KEPT}(?:的|所有|全部)*"
    rf"(?:内容|文本|文字|段落|条目|规则|样式|属性|字段|配置|章节|数据|标签|元素)+(?:均|都|也|在这里|在此|等)*{_LEFT}?"
)
_HINT = re.compile(
    rf"\b(?:rest|remain\w*|existing|previous|others?|original|unchanged|omitted|same|more|{_NOUN})\b"
    rf"|{_KEPT}|{_PART}|{_LEFT}",
    re.IGNORECASE,
)
"""After dots, one such word is enough."""

_HEADER = re.compile(r"(?:async\s+)?(?:def|class)\s+(?P<name>\w+)")
# A head with its body in the same line: `def f(self): ...`.
_STUB = re.compile(r"(?:(?:async\s+)?(?:def|class)\s|\)).*:\s*\.{3}\s*(?:#.*)?")
_BODY_AFTER = (":", '"', "'")
_WITHIN = (",", "(", "[")
_FEWER = 4  # times as many lines go than come: then weak words stand for them, too
_LONGEST = 200
"""A longer line says something."""


_STANDS = (
    "Code is left out at {line!r}: the lines that it stands for would be deleted. Write them, or change only the lines "
    "that differ and leave the others out of the call. If you mean this line as it is, say it in other words."
)


def refuse_left_out(path: str, before: str, after: str) -> None:
    """Raise EditRefused if a new line of `after`, such as `# rest unchanged`, is a placeholder for lines of the file
    that the change removes; in Python also for a `...` that is not the whole body of a definition. Stubs with `...` as
    their body are accepted.
    """
    name = path.rpartition(".")[2].lower()
    old, new = filled_lines(before), filled_lines(after)
    lost, spare = Counter(old) - Counter(new), Counter(new) - Counter(old)
    # Most changes have none, and need no comparison.
    standing = {
        line for line in (spare if lost else ()) if _stands_for_code(line, path, whole=False) or _dots_alone(line, name)
    }
    loose = {line for line in (spare if lost else ()) if line not in standing and _may_stand(line, path)}
    for gone, come in _changes(before, after) if standing or loose else ():
        if not any(lost[line] and _says(line) and not is_comment_in(path, line) for line in gone):
            continue
        said, had = _count_said(come, path), _count_said(gone, path)
        fewer = said < had
        for line in come:
            weak = had <= _FEWER * said and _WEAK.fullmatch(_said_by(line).strip(AROUND))
            if line in standing or (fewer and line in loose and not weak):
                raise EditRefused("not_found", _STANDS.format(line=line))
    if name in ("py", "pyi") and "..." in after and _stubs(new)[2] > _stubs(old)[2]:
        raise EditRefused("not_found", _STANDS.format(line="..."))


def _changes(before: str, after: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the filled lines that go and those that come in their place."""
    rows, fresh = split_lines(before), split_lines(after)
    for run in runs_of(rows, fresh):
        gone, come = rows[run.old_start : run.old_end], fresh[run.new_start : run.new_end]
        yield filled_lines("".join(gone)), filled_lines("".join(come))


def _count_said(lines: Iterable[str], path: str) -> int:
    """Return how many of the lines say something and are no comment."""
    return sum(_says(line) and not is_comment_in(path, line) and not _is_aside(line) for line in lines)


def _dots_alone(line: str, name: str) -> bool:
    """Return whether a line has nothing but dots, which are a statement in Python and end a document in YAML."""
    return line == "..." and name not in ("py", "pyi", "yaml", "yml")


def _says(line: str) -> bool:
    return any(map(str.isalnum, line))


def left_out(before: str, after: str, path: str = "a.py") -> str:
    """Return the first new line of `after` that is a placeholder for code left out; '' for none. The name of the file
    tells documents, in which `#` begins a heading. If every line of `before` is still there, a line of words alone is
    an ordinary comment.
    """
    old, new = filled_lines(before), filled_lines(after)
    spare = Counter(old)
    # Nothing is missing, so "the rest stays the same" can only be an ordinary comment.
    whole = bool(old) and not spare - Counter(new)
    loose = set()
    for line in new:
        spare[line] -= 1
        if spare[line] < 0 and _stands_for_code(line, path, whole=whole):
            return line
        if spare[line] < 0 and not whole and _may_stand(line, path):
            loose.add(line)
    for gone, come in _changes(before, after) if loose else ():
        if _count_said(come, path) < _count_said(gone, path) and (found := next(filter(loose.__contains__, come), "")):
            return found
    return _emptied_name(old, new)


def filled_lines(text: str) -> list[str]:
    """Return the lines of a text that are not blank, in order, without surrounding blanks."""
    return [line.strip() for line in with_newlines(text, "\n").split("\n") if line.strip()]


def _stands_for_code(line: str, path: str, *, whole: bool) -> bool:
    """Return whether a stripped line is a placeholder by itself; the statement `...` may be (see `_emptied_name`)."""
    if len(line) > _LONGEST:
        return False
    comment, bracketed = comment_of(line), _BRACKETED.fullmatch(line)
    said = comment.said if comment else line
    bare = said.strip(AROUND)
    dots = _DOTS.match(said)
    if comment is None:
        if (behind := _TRAILING.search(line)) is not None and is_phrase(behind["said"].strip(AROUND)):
            return True
        spoken = bool(dots) and said.strip("\u2026.")[:1].isspace()  # not the spread `...rest`
        return not line.strip("\u2026") or ((spoken or bracketed is not None) and is_phrase(bare))
    if dots:
        return not bare or _HINT.search(bare) is not None or says_left_out(bare)
    return not whole and is_comment_in(path, line) and is_phrase(bare)


def _may_stand(line: str, path: str) -> bool:
    """Return whether a stripped line is a placeholder if more lines go than come where it stands."""
    if len(line) > _LONGEST:
        return False
    if line != "..." and _CUT.fullmatch(line):  # dots alone are a statement of Python, and judged for themselves
        return True
    if not (is_comment_in(path, line) or (is_document(path) and _is_aside(line))):
        return False
    said = _said_by(line)
    bare = said.strip(AROUND)
    around = bool(_DOTS.match(said)) and said.rstrip(" \t)]}>").endswith(("...", "\u2026"))
    return around or is_phrase(bare) or may_say_left_out(bare) or _is_loose(bare)


def _is_loose(words: str) -> bool:
    return any(each.fullmatch(words) for each in (_LOOSE, _LOOSE_CHINESE, _WEAK)) or may_say_left_out_in_english(words)


def _said_by(line: str) -> str:
    comment = comment_of(line)
    return comment.said if comment is not None else line


def _is_aside(line: str) -> bool:
    """Return whether a line of a document is one remark in brackets, as `[unchanged]` or `*(rest omitted)*`."""
    return _ASIDE.fullmatch(line) is not None


def is_phrase(words: str) -> bool:
    """Return whether words, without the comment signs and dots around them, say that code is left out, in any of the
    languages known, such as `rest unchanged`.
    """
    return bool(_PHRASE.fullmatch(words) or _CHINESE.fullmatch(words)) or says_left_out(words)


def _emptied_name(old: list[str], new: list[str]) -> str:
    """Return the name of a definition of `old` whose body is only `...` in `new`, or `...` itself where it stands
    among statements; '' for none. New definitions may be stubs, as in a protocol.
    """
    (had, had_stubs, had_loose), (has, stubs, loose) = _stubs(old), _stubs(new)
    real_before, real_after = had - had_stubs, has - stubs
    # A name may be defined several times: it is emptied only if fewer real bodies of it are left.
    for name in stubs - had_stubs:
        if real_after[name] < real_before[name]:
            return f"{name}: ..."
    return "..." if loose > had_loose else ""


def _stubs(lines: list[str]) -> tuple[Counter[str], Counter[str], int]:
    """Return the defined names, those with `...` as their body, and how often `...` stands anywhere else."""
    names: Counter[str] = Counter()
    stubs: Counter[str] = Counter()
    loose = 0
    name = last = ""
    for line in lines:
        if header := _HEADER.match(line):
            name = header["name"]
            names[name] += 1
        is_dots = line.partition("#")[0].strip() == "..."
        if name and (_STUB.fullmatch(line) or (is_dots and last.endswith(_BODY_AFTER))):
            stubs[name] += 1
        elif is_dots and not last.endswith(_WITHIN):
            loose += 1
        last = line
    return names, stubs, loose
