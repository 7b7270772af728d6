"""The smallest part of a change that still works, found by trying parts of it: bisection by likelihood.

The parts are put in order, the likeliest to matter first; the smallest beginning of that order that works is found by
halving the likelihood, its last part matters, and the same is done with the parts before it. What fails tells which
parts are missing, by the words that both share. At the end, each part that was found is left out once: one that breaks
without another is gone with its reason. Pure. Not here: what a part is, and how it is tried
(`session/own_runs.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import prod

# Each is a run of all tests.
MAX_TRIES = 30
USUAL = 3.0  # so many parts matter, as long as nothing is known
SURE = 0.9  # a part that alone shares a word with what fails
_LIKELY = 0.75
# Never 0: a part that is wrongly held for harmless must still be found by halving.
_LEAST = 0.005


@dataclass(frozen=True, slots=True)
class PartTraits:
    """A part of a change: the words that it adds or removes, and how likely (0 to 1) it is to matter at all."""

    words: frozenset[str]
    chance: float


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of a try: whether everything works that must, and the words of the failures."""

    works: bool
    words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Minimal:
    """The result of minimizing: the numbers of the parts that are needed, and how many tries it took. `whole` is False
    if there were too few tries to look at every part; parts not looked at are in `needed`.
    """

    needed: frozenset[int]
    tries: int
    whole: bool = True


Try = Callable[[frozenset[int]], Awaitable[Tried]]
"""Tries the parts with these numbers alone."""


async def minimal(parts: Sequence[PartTraits], attempt: Try, nothing: Tried, most: int = MAX_TRIES) -> Minimal:
    """Return the parts that matter, found in at most `most` tries, none if it works with `nothing`; `attempt` tries a
    set of parts, by their 0-based numbers. All of them together work, and `nothing` is the result without any. The
    result works, and unless the tries do not suffice, it does not work without any one of its parts.
    """
    search = _Search(parts, attempt, most)
    if not nothing.works:
        search.learn(nothing, frozenset())
        await search.run()
        return Minimal(frozenset(search.needed | set(search.left)), search.tries, search.whole)
    return Minimal(frozenset(), 0)


class _Search:
    def __init__(self, parts: Sequence[PartTraits], attempt: Try, most: int) -> None:
        self.needed: set[int] = set()
        self.left = list(range(len(parts)))  # `needed` and these together work
        self.tries = 0
        self.whole = False
        self._parts = parts
        self._chances = _scale([part.chance for part in parts])
        self._shared = Counter(word for part in parts for word in part.words)
        self._failed: list[frozenset[int]] = []
        self._attempt = attempt
        self._most = most

    async def run(self) -> None:
        """Find what is needed; `whole` is True then, unless the tries are used up."""
        await self._gather()
        self.whole = not self.left and await self._look_again()

    async def _gather(self) -> None:
        """Move what is needed out of `left`, which is empty then, unless the tries are used up."""
        while self.left:
            self._sort(0)
            fails = self._known_to_fail()
            # Invariant: the first `fails` of `left` do not suffice, all of `left` do; so the last one is needed once
            # they differ by one.
            while len(self.left) - fails > 1:
                if self.tries >= self._most:
                    return
                count = self._next(fails)
                # With what is needed already: only together do they work.
                if await self._works(self._first(count)):
                    del self.left[count:]
                else:
                    fails = count
                    # Only what lies beyond: the order of the first `fails`, which are known to fail, has to stay.
                    self._sort(fails)
            if self.left:
                self.needed.add(self.left.pop())

    async def _look_again(self) -> bool:
        """Leave out what only parts needed that are gone by now; return False if the tries are used up."""
        while (rest := self._untried_rest()) is not None:
            if self.tries >= self._most:
                return False
            if await self._works(rest):
                self.needed = set(rest)
        return True

    def _untried_rest(self) -> frozenset[int] | None:
        """Return what is needed without one part, if that was not tried by itself; None if it was for each part."""
        rests = (frozenset(self.needed - {number}) for number in sorted(self.needed))
        return next((rest for rest in rests if rest not in self._failed), None)

    async def _works(self, present: frozenset[int]) -> bool:
        self.tries += 1
        found = await self._attempt(present)
        if not found.works:
            self.learn(found, present)
        return found.works

    def learn(self, failed: Tried, present: frozenset[int]) -> None:
        """Take the parts that were not there, and share a word with what failed, for likelier."""
        self._failed.append(present)
        absent = [number for number in range(len(self._parts)) if number not in present]
        said = (self._parts[number].words & failed.words for number in absent)
        told = _scale([max((SURE / self._shared[word] for word in words), default=0.0) for words in said])
        for number, chance in zip(absent, told, strict=True):
            self._chances[number] = max(self._chances[number], chance)

    def _first(self, count: int) -> frozenset[int]:
        return frozenset(self.left[:count]) | self.needed

    def _known_to_fail(self) -> int:
        """Return how many of `left` are known not to suffice; -1 if not even that is known of none of them."""
        counts = (count for count in range(len(self.left) - 1, -1, -1) if self._fails(self._first(count)))
        return next(counts, -1)

    def _fails(self, present: frozenset[int]) -> bool:
        # A part of what failed fails, too: that parts only help each other is assumed, and `_look_again` mends where
        # it is not so.
        return any(present <= failed for failed in self._failed)

    def _sort(self, start: int) -> None:
        self.left[start:] = sorted(self.left[start:], key=lambda number: (-self._chances[number], number))

    def _next(self, fails: int) -> int:
        """Return how many of `left` to try: all that are likely to matter, else about half of the likelihood."""
        likely = sum(self._chances[number] >= _LIKELY for number in self.left)
        return likely if fails < likely < len(self.left) else self._half(fails)

    def _half(self, fails: int) -> int:
        """Return a number of parts of which it is about as likely as not that they suffice."""
        chances = [self._chances[number] for number in self.left]
        counts = range(fails + 1, len(chances) + 1)
        # The likelihood that exactly the part at `count` is the last one that matters: it does, and none after it.
        last = [(chances[count - 1] if count else 1.0) * prod(1 - each for each in chances[count:]) for count in counts]
        whole, so_far, best = sum(last), 0.0, (2.0, 0)
        for count, each in zip(counts[:-1], last, strict=False):
            so_far += each
            best = min(best, (abs(so_far / whole - 0.5), count))
        return best[1]


def _scale(chances: Sequence[float]) -> list[float]:
    """Return likelihoods in the same proportions, of which not more than `USUAL` are to be expected."""
    factor = min(1.0, USUAL / (sum(chances) or 1.0))
    return [max(chance * factor, _LEAST) for chance in chances]
