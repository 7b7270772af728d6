"""The search for the parts that matter: it always ends with what works, and what fails leads it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.session.proving.minimizing import MAX_TRIES, Minimal, PartTraits, Tried, minimal

Works = Callable[[frozenset[int]], bool]


def searched(
    count: int,
    works: Works,
    said: Callable[[frozenset[int]], frozenset[str]] = lambda present: frozenset(),
    most: int = MAX_TRIES,
) -> tuple[Minimal, list[frozenset[int]]]:
    """What is found among parts that each have a word of their own and one in common, and what was tried."""
    tried: list[frozenset[int]] = []

    async def attempt(present: frozenset[int]) -> Tried:
        tried.append(present)
        return Tried(works(present), frozenset() if works(present) else said(present))

    async def search() -> Minimal:
        parts = [PartTraits(frozenset({f"part{number}", "number"}), 0.3) for number in range(count)]
        return await minimal(parts, attempt, await attempt(frozenset()), most)

    return asyncio.run(search()), tried[1:]


@given(st.integers(1, 25).flatmap(lambda count: st.tuples(st.just(count), st.sets(st.integers(0, count - 1)))))
def test_exactly_the_parts_that_are_needed(case: tuple[int, set[int]]) -> None:
    count, needed = case
    found, tried = searched(count, lambda present: needed <= present, most=200)
    assert found == Minimal(frozenset(needed), len(tried))
    assert len(set(tried)) == len(tried), "nothing is tried twice"


@given(st.integers(1, 12), st.randoms(use_true_random=False), st.integers(0, 40))
def test_what_is_left_has_been_seen_to_work_whatever_depends_on_what(
    count: int, chance: random.Random, most: int
) -> None:
    everything = frozenset(range(count))
    outcomes: dict[frozenset[int], bool] = {everything: True}

    def works(present: frozenset[int]) -> bool:
        return outcomes.setdefault(present, chance.random() < 0.4)

    found, _ = searched(count, works, most=most)
    assert outcomes[found.needed]
    assert found.tries <= most


def twenty_with_dependencies(named: bool, most: int = 60, cases: int = 1000) -> list[int]:
    """How many tries these cases of 20 parts take, of which up to six matter and up to three break without another;
    each result works, and without any one of its parts it does not.
    """
    chance = random.Random(1)
    return sorted(_tries_with_dependencies(chance, named, most) for _ in range(cases))


def _tries_with_dependencies(chance: random.Random, named: bool, most: int) -> int:
    needed = frozenset(chance.sample(range(20), chance.randint(0, 6)))
    dependencies = [(each[0], each[1]) for each in (chance.sample(range(20), 2) for _ in range(chance.randint(0, 3)))]

    def missing(present: frozenset[int]) -> list[int]:
        return sorted(needed - present) + [other for one, other in dependencies if one in present - {other}]

    def works(present: frozenset[int]) -> bool:
        return needed <= present and all(other in present for one, other in dependencies if one in present)

    def said(present: frozenset[int]) -> frozenset[str]:
        return frozenset(f"part{number}" for number in missing(present)[:1] if named)

    found, tried = searched(20, works, said, most)
    assert works(found.needed), (needed, dependencies)
    removable = [each for each in found.needed if works(found.needed - {each})]
    assert not (found.whole and removable), (needed, dependencies, found)
    return len(tried)


@pytest.mark.slow
def test_no_part_of_the_result_can_be_left_out_whatever_breaks_without_what() -> None:
    named, opaque = twenty_with_dependencies(named=True), twenty_with_dependencies(named=False)
    print(f"tries, median and most: named {named[500]}, {named[-1]}; opaque {opaque[500]}, {opaque[-1]}")
    assert named[500] <= 8 < opaque[500]


@pytest.mark.slow
def test_a_result_that_could_not_be_looked_at_again_is_not_whole() -> None:
    for most in (12, 20, 28):
        twenty_with_dependencies(named=False, most=most, cases=200)


def three_of_twenty(names: Callable[[frozenset[int]], frozenset[int]]) -> list[int]:
    """How many tries each of 200 cases takes, if what fails names these of the missing parts."""
    chance = random.Random(5)
    return [tries_of(frozenset(chance.sample(range(20), 3)), names) for _ in range(200)]


def tries_of(needed: frozenset[int], names: Callable[[frozenset[int]], frozenset[int]]) -> int:
    def said(present: frozenset[int]) -> frozenset[str]:
        return frozenset(f"part{number}" for number in names(needed - present))

    found, tried = searched(20, lambda present: needed <= present, said)
    assert found.needed == needed
    return len(tried)


@pytest.mark.slow
def test_messages_that_name_what_is_missing_lead_to_it() -> None:
    tries = three_of_twenty(lambda missing: frozenset({min(missing)}))
    assert max(tries) <= 8, "with the run without changes, and the one with all: 10"


@pytest.mark.slow
def test_messages_that_name_everything_lead_nowhere_and_do_no_harm() -> None:
    assert max(three_of_twenty(lambda missing: frozenset(range(20)))) <= 21, "two or three to look at the result again"


def test_too_few_tries_leave_what_was_not_looked_at() -> None:
    found, tried = searched(20, lambda present: {3, 11, 17} <= present, most=4)
    assert len(tried) == 4
    assert not found.whole
    assert found.needed >= {3, 11, 17}


def test_nothing_is_tried_where_nothing_is_needed() -> None:
    found, tried = searched(20, lambda present: True)
    assert (found, tried) == (Minimal(frozenset(), 0), [])
