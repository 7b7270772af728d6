"""Tasks to repair: one fault in a function that was whole, and a test of recorded results that sees it."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.bench.tasks.mutations import Mutation, mutations
from tests.bench.tasks.recording import passes, record, unittest_text
from tests.bench.tasks.sources import Source
from tests.bench.tasks.task import Task, unittest_command
from tests.bench.tasks.words import fault_words

TRIES = 8
FEWEST_CASES = 2


def fault_task(chance: random.Random, task_id: str, size: str, source: Source) -> Task | None:
    """A task with a fault that the test sees at once; None where none of a few does, or the test is not steady."""
    recorded = record(source.files, source.module, source.calls)
    if len(recorded) < FEWEST_CASES:
        return None
    whole = source.files[source.place]
    test = f"test_{source.module.rpartition('.')[2]}.py"
    files = {**source.files, test: unittest_text(source.module, whole, source.function, recorded)}
    if not passes(files, test):
        return None
    for fault in list(_varied(chance, mutations(whole, source.function)))[:TRIES]:
        broken = {**files, source.place: fault.applied(whole)}
        if passes(broken, test) is False:
            function = source.function.rpartition(".")[2]
            return Task(
                id=task_id,
                kind="fault",
                size=size,
                words=fault_words(chance, function=function, file=source.place, test=test),
                files=broken,
                tests=(test,),
                check=unittest_command([test]),
                place=source.place,
                cause=_cause(source, fault, whole),
            )
    return None


def _varied(chance: random.Random, faults: list[Mutation]) -> Iterator[Mutation]:
    """The faults in an order drawn by chance, the sort first, so that common sorts do not outweigh the others."""
    sorts: dict[str, list[Mutation]] = {}
    for fault in faults:
        sorts.setdefault(fault.sort, []).append(fault)
    while sorts:
        sort = chance.choice(sorted(sorts))
        yield sorts[sort].pop(chance.randrange(len(sorts[sort])))
        sorts = {name: left for name, left in sorts.items() if left}


def _cause(source: Source, fault: Mutation, whole: str) -> str:
    before = " ".join(whole[fault.start : fault.end].split())
    after = " ".join(fault.replacement.split())
    return f"{source.origin}: {fault.sort}: {before!r} became {after!r}"
