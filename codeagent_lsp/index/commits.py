"""Past commits as evidence for a file: which files they changed, and whether their messages are like the request.

The words of a task may occur in no file, as with a task in a language in which the code is not written, while earlier
work on the same thing has a message with these words. Pure. Not here: reading the commits (`session/run_index.py`),
what they count beside the words of the files (`rank.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import log, sqrt
from typing import NamedTuple

from codeagent_lsp.index.store import search_words
from codeagent_lsp.index.words import QueryTerms, count_words

MOST_FILES = 12
"""The most files of a commit that is used: one that changes more says little about any of them."""
NEAREST = 30
LOG = ("log", "--no-merges", "--no-renames", "--name-only", "-z", "--max-count=2000", "--format=%x01%s%x02")
"""The arguments of git that print the input of `commits_of`."""
_K1, _B = 1.2, 0.75  # the usual constants of BM25


class PastCommit(NamedTuple):
    """The first line of a commit's message, and the index paths of the files that it changed."""

    subject: str
    files: tuple[str, ...]


class PastCommits:
    """Past commits, searchable by their words; those that changed no file or more than 12 are left out. Made once for
    many questions, as it splits all messages into words; immutable afterwards.
    """

    def __init__(self, commits: Iterable[PastCommit] = ()) -> None:
        self._commits = [
            (count_words(each.subject), each.files) for each in commits if 0 < len(each.files) <= MOST_FILES
        ]
        having = Counter(word for words, _ in self._commits for word in words)
        count = len(self._commits)
        self._rarity = {word: log(1 + (count - often + 0.5) / (often + 0.5)) for word, often in having.items()}
        self._average = sum(sum(words.values()) for words, _ in self._commits) / count if count else 1.0

    def files(self, question: QueryTerms) -> dict[str, float]:
        """Return index paths with scores above 0 and up to 1: the files that the 30 commits nearest to a question
        changed; {} if no message has a word of it.
        """
        wanted = frozenset(search_words(question)) & self._rarity.keys()
        scored = [(score, files) for words, files in self._commits if (score := self._score(words, wanted)) > 0]
        found: dict[str, float] = {}
        for score, files in sorted(scored, key=lambda each: -each[0])[:NEAREST]:
            for path in files:
                # A commit of many files is weaker evidence for each.
                found[path] = found.get(path, 0.0) + score / sqrt(len(files))
        best = max(found.values(), default=1.0)
        return {path: score / best for path, score in found.items()}

    def _score(self, words: dict[str, int], wanted: frozenset[str]) -> float:
        """Return the BM25 score of a message."""
        common = wanted & words.keys()
        if not common:
            return 0.0
        length = 1 - _B + _B * sum(words.values()) / self._average
        return sum(self._rarity[word] * words[word] * (_K1 + 1) / (words[word] + _K1 * length) for word in common)


NO_COMMITS = PastCommits()


def commits_of(log: str, folder: str = "") -> list[PastCommit]:
    """Return the commits in the output of `git` with the arguments `LOG`, in its order; `folder`, '' or ending with
    `/`, is put in front of each path.
    """
    found = []
    for block in log.split("\x01")[1:]:
        subject, _, names = block.partition("\x02")
        files = [name.lstrip("\n") for name in names.split("\0") if name.strip()]
        found.append(PastCommit(subject, tuple(f"{folder}{name}" for name in files)))
    return found
