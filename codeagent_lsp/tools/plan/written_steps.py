"""Reads the steps of a plan out of Markdown: from the page that the user has changed, and from the answer of a model
that has written its plan down instead of calling `create_plan`. Pure; not here: what a plan is (`plan.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from codeagent_lsp.tools.plan.plan import FENCE, MOST_STEPS, TITLE_CHARS, StepDraft

FEWEST = 2

# Greedy to the last stars, as titles may have some.
_ITEM = re.compile(r" {0,3}(?:[-*+]\s+)?(?:\[.\]\s+)?(?:(\d{1,9})[.)]\s+)?(?:\*\*(.+)\*\*.*|(\S.*))$")
_MARKED = re.compile(r" {0,3}(?:[-*+]|\d+[.)])\s")
# `1.`, `2)`, `3、`, `Step 4:`, `步骤 5：`, `第 6 步：`, each also as a heading or in bold.
_NUMBERED = re.compile(
    r" {0,3}(?:#{1,6}\s+)?(?:[-*+]\s+)?(?:\[[ xX]\]\s+)?(?P<bold>\*\*)?"
    r"(?:(?:step|phase|步骤|阶段)\s*(?P<step>\d{1,9})\s*[.:)：、–—-]?|第\s*(?P<nth>\d{1,9})\s*步\s*[.:：、]?|(?P<plain>\d{1,9})\s*[.)、](?!\d))"
    r"\s*(?(bold)(?P<close>\*\*)?)\s*[:：]?\s*(?P<words>\S.*)$",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*(?P<title>[^*]+?)\s*[:：]?\*\*\s*[:：–—-]?\s*(?P<rest>.*)$")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*")


@dataclass(frozen=True, slots=True)
class ListedStep:
    """An item of a Markdown list that is a step: its title, its description, and its `number` as written, '' for
    none.
    """

    number: str
    title: str
    description: str = ""

    def with_line(self, line: str) -> ListedStep:
        """Return the step with one more line of description."""
        return replace(self, description="\n".join(filter(None, (self.description, line.strip()))))


def listed_steps(page: str) -> Iterator[ListedStep]:
    """Yield the items of the first list of a page; indented lines below an item describe it. Nothing without a list."""
    item: ListedStep | None = None
    for line in page.splitlines():
        if item is not None and line.startswith((" " * 2, "\t")) and line.strip():
            item = item.with_line(line)
            continue
        if item is not None and line.startswith("#"):
            break
        found = _ITEM.match(line) if _MARKED.match(line) else None
        if found is not None:
            if item is not None:
                yield item
            item = ListedStep(found[1] or "", (found[2] or found[3]).strip())
    if item is not None:
        yield item


def drafted_steps(answer: str) -> tuple[StepDraft, ...]:
    """Return the numbered steps of an answer, from 1 on, each with the lines below it as its description; () for fewer
    than 2, and for an answer that ends with a question, since choices are numbered too.
    """
    if answer.rstrip().endswith(("?", "？")):
        return ()
    steps: list[ListedStep] = []
    fenced = False
    for line in answer.splitlines():
        fenced ^= FENCE.match(line) is not None
        found = None if fenced else _NUMBERED.match(line)
        if found is not None and _number(found) == len(steps) + 1:
            steps.append(_step_with_title(found))
        elif steps and (line.startswith((" ", "\t", "-", "*", "+")) or fenced):
            steps[-1] = steps[-1].with_line(line)
        elif line.startswith("#") and len(steps) >= FEWEST:
            break
    if not FEWEST <= len(steps) <= MOST_STEPS:
        return ()
    return tuple(StepDraft(step.title, step.description) for step in steps)


def _number(found: re.Match[str]) -> int:
    return int(found["step"] or found["nth"] or found["plain"])


def _step_with_title(found: re.Match[str]) -> ListedStep:
    """Return a step with its title: what is bold, else the first sentence if the whole line is too long."""
    words = found["words"].strip()
    if found["bold"] and not found["close"]:
        words = f"**{words}"
    bold = _BOLD.match(words)
    title, rest = (bold["title"], bold["rest"]) if bold else (words, "")
    if len(title) > TITLE_CHARS:
        first, *more = _SENTENCE.split(title, maxsplit=1)
        title, rest = first[:TITLE_CHARS], " ".join(filter(None, (first[TITLE_CHARS:], *more, rest)))
    return ListedStep(str(_number(found)), title.strip(" *") or words[:TITLE_CHARS], rest.strip())
