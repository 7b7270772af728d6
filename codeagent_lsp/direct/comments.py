"""Comments that a reply leaves out between lines that it keeps: models give code for what it does, and drop what is
said about it. They stay, unless the request is about comments. Where the line below changes, they may be wrong now.

Pure functions. Not here: what stands above a whole definition (`heads.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codeagent_lsp.index.comments import comment_of, is_comment_in, is_document
from codeagent_lsp.index.other_texts import is_sentence
from codeagent_lsp.workspace.edits.line_matching import runs_of
from codeagent_lsp.workspace.text.position import split_lines

_ABOUT = re.compile(
    r"comment|remark|\bdocs?\b|document|todo|fixme|clean|tidy|strip|short|simpl|concise|minif|注释|简化|清理|kommentar"
    r"|aufräum|coment|commentaire",
    re.IGNORECASE,
)
_OPEN = re.compile(r"\b(?:TODO|FIX[M]E|X{3}|HACK|BUG|WIP)\b|待办")
_MOST_LINES = 20_000


def with_comments(path: str, before: str, after: str, request: str) -> str:
    """Return the new text of a file with the comments, sentences on lines of their own, that stood between lines which
    are kept; as it is if nothing else has changed, or `request`, the user's words, is about comments.
    """
    if is_document(path) or _ABOUT.search(request):
        return after
    rows, fresh = split_lines(before), split_lines(after)
    if len(rows) + len(fresh) > _MOST_LINES or not any(is_comment_in(path, row.strip()) for row in rows):
        return after
    there = {row.strip() for row in fresh}
    added: dict[int, list[str]] = {}
    for run in runs_of(rows, fresh):
        gone = [row.strip() for row in rows[run.old_start : run.old_end]]
        stays = run.new_start == run.new_end < len(fresh) and not there.intersection(gone)
        if stays and fresh[run.new_end].strip() and all(is_comment_in(path, row) for row in gone) and _is_said(gone):
            added[run.new_end] = rows[run.old_start : run.old_end]
    if not added:
        return after
    done = "".join("".join((*added.get(at, ()), row)) for at, row in enumerate(fresh))
    # Where nothing else changes, they were taken away on purpose.
    return after if done.split() == before.split() else done


def _is_said(lines: Sequence[str]) -> bool:
    """Return whether comments hold sentences that may still be true, no code that was put aside or work to be done."""
    said = [comment.said.strip() for line in lines if (comment := comment_of(line)) is not None]
    filled = [each for each in said if any(map(str.isalnum, each))]
    return bool(filled) and all(is_sentence(each) and not _OPEN.search(each) for each in filled)
