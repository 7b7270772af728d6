"""Which tasks are drawn for a seed: kinds and sizes in fixed shares, everything else by chance."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tests.bench.tasks import changes
from tests.bench.tasks.additions import addition_task
from tests.bench.tasks.faults import fault_task
from tests.bench.tasks.renames import rename_task
from tests.bench.tasks.sources import Source, library_sources
from tests.bench.tasks.task import Task

KINDS = ("fault", "addition", "rename")
ALL_KINDS = (*KINDS, *changes.KINDS)
"""The later ones are drawn only where they are asked for: what a seed draws of the first three stays."""
SIZES = ("small", "medium", "large")
DEFAULT_COUNT = 60
SHARES = {
    ("fault", "small"): 12, ("fault", "medium"): 12, ("fault", "large"): 12,
    ("addition", "small"): 4, ("addition", "medium"): 4, ("addition", "large"): 6,
    ("rename", "small"): 4, ("rename", "medium"): 4, ("rename", "large"): 2,
    **{(kind, size): 2 for kind in changes.KINDS for size in ("small", "medium")},
}  # fmt: skip
MOST_ROUNDS = 100  # how often all functions of a size are used again, with other faults
PUBLIC_SHARE = 0.5  # of the large faults, where public code was given


@dataclass(frozen=True, slots=True)
class _Slot:
    kind: str
    size: str
    number: int

    @property
    def task_id(self) -> str:
        return f"{self.kind}-{self.size}-{self.number:02d}"


def draw(
    seed: int,
    count: int = DEFAULT_COUNT,
    *,
    kinds: Collection[str] = KINDS,
    sizes: Collection[str] = SIZES,
    public: Sequence[Source] = (),
) -> list[Task]:
    """So many tasks of these kinds and sizes, the same for the same arguments; the first few are mixed already."""
    chance = random.Random(f"order {seed}")
    faults = _Faults(seed, public)
    drawn: list[Task] = []
    for slot in _slots(chance, count, kinds, sizes):
        own = random.Random(f"{seed} {slot.task_id}")
        if slot.kind == "fault":
            drawn.append(faults.next(own, slot))
        elif slot.kind == "addition":
            drawn.append(addition_task(own, slot.task_id, slot.size, slot.number + seed))
        elif slot.kind == "rename":
            drawn.append(rename_task(own, slot.task_id, slot.size, slot.number + seed))
        else:
            drawn.append(changes.change_task(own, slot.task_id, slot.kind, slot.size, slot.number + seed))
    return drawn


class _Faults:
    """The sources that are left for each size, so that no function comes twice before all were used."""

    def __init__(self, seed: int, public: Sequence[Source]) -> None:
        self._seed = seed
        self._round = dict.fromkeys(SIZES, 0)
        self._left: dict[str, Iterator[Source]] = {}
        self._public = list(public)
        random.Random(f"public {seed}").shuffle(self._public)

    def next(self, chance: random.Random, slot: _Slot) -> Task:
        while True:
            source = self._source(chance, slot.size)
            if (task := fault_task(chance, slot.task_id, slot.size, source)) is not None:
                return task

    def _source(self, chance: random.Random, size: str) -> Source:
        if self._public and size == "large" and chance.random() < PUBLIC_SHARE:
            return self._public.pop()
        while True:
            source = next(self._left.get(size, iter(())), None)
            if source is not None:
                return source
            self._round[size] += 1
            if self._round[size] > MOST_ROUNDS:
                raise LookupError(f"no function of the standard library is good for a {size} task")
            order = random.Random(f"sources {self._seed} {size} {self._round[size]}")
            self._left[size] = library_sources(order, size)


def _slots(chance: random.Random, count: int, kinds: Collection[str], sizes: Collection[str]) -> list[_Slot]:
    """Kinds and sizes by their shares, spread evenly over the order."""
    shares = {key: share for key, share in SHARES.items() if key[0] in kinds and key[1] in sizes}
    if not shares:
        raise ValueError("no tasks of these kinds and sizes")
    begins = {key: chance.random() for key in shares}
    places = sorted(
        ((begins[key] + number) / share, key, number + 1)
        for key, share in shares.items()
        for number in range(count * share // sum(shares.values()) + 2)
    )
    return [_Slot(*key, number) for _, key, number in places[:count]]
