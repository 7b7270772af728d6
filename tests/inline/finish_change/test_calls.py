"""Arguments after a changed signature: Python itself says what a call gives to which parameter, before and after."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.inline.finish_change.calls import (
    Argument,
    Family,
    Parameter,
    ParameterKind,
    Placed,
    Signature,
    SignatureChange,
    empty_value,
    needs_nothing,
    renamed_parameters,
    repair_arguments,
)
from tests.examples import examples

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
ORDER: dict[ParameterKind, int] = {"positional": 0, "either": 1, "rest": 2, "keyword": 3, "rest_keywords": 4}
PYTHON = {
    "positional": inspect.Parameter.POSITIONAL_ONLY,
    "either": inspect.Parameter.POSITIONAL_OR_KEYWORD,
    "rest": inspect.Parameter.VAR_POSITIONAL,
    "keyword": inspect.Parameter.KEYWORD_ONLY,
    "rest_keywords": inspect.Parameter.VAR_KEYWORD,
}
LEFT_OUT = "(left out)"


def valid(parameters: Sequence[Parameter]) -> Signature:
    """Return a signature that Python takes: kinds in order, and nothing needed behind what is not."""
    found: list[Parameter] = []
    for each in sorted(parameters, key=lambda each: ORDER[each.kind]):
        needs = each.kind in ("positional", "either") and any(
            other.optional and other.kind in ("positional", "either") for other in found
        )
        found.append(Parameter(each.name, each.kind, True, default="0") if needs and not each.optional else each)
    return Signature(tuple(found))


def parameter(name: str) -> st.SearchStrategy[Parameter]:
    kinds: st.SearchStrategy[ParameterKind] = st.sampled_from(("positional", "either", "either", "keyword"))
    return st.builds(Parameter, st.just(name), kinds, st.booleans())


@st.composite
def changes(draw: st.DrawFn) -> SignatureChange:
    """Two signatures of which the second has some parameters fewer, more, in another order or by another name."""
    names = draw(st.lists(st.sampled_from(NAMES[:4]), unique=True, max_size=4))
    old = [draw(parameter(name)) for name in names]
    rest: list[Parameter] = [Parameter("more", "rest")] if draw(st.booleans()) else []
    rest += [Parameter("others", "rest_keywords")] if draw(st.booleans()) else []
    renamed = {each.name: f"{each.name}_now" for each in old if draw(st.integers(0, 3)) == 0}
    kept = [each for each in old if draw(st.integers(0, 3))]
    new = [
        Parameter(renamed.get(each.name, each.name), each.kind if draw(st.booleans()) else "either", each.optional)
        for each in (draw(st.permutations(kept)) if draw(st.booleans()) else kept)
    ]
    for name in NAMES[4:]:
        if draw(st.booleans()):
            new.insert(draw(st.integers(0, len(new))), draw(parameter(name)))
    renamed = {name: now for name, now in renamed.items() if any(each.name == now for each in new)}
    return SignatureChange(valid([*old, *rest]), valid([*new, *(rest if draw(st.booleans()) else [])]), renamed)


@st.composite
def calls(draw: st.DrawFn, signature: Signature) -> list[Argument]:
    """A right call of a function: some arguments by place, the others by name, what may be left out perhaps."""
    places = signature.by_place
    least = sum(each.kind == "positional" and not each.optional for each in places)
    count = draw(st.integers(least, len(places)))
    found = [Argument(f"value_{each.name}", effects=draw(st.integers(0, 5)) == 0) for each in places[:count]]
    if count == len(places) and signature.has("rest") and draw(st.booleans()):
        found += [Argument("value_more_1"), Argument("value_more_2")]
    by_name = [
        Argument(f"value_{each.name}", each.name, effects=draw(st.integers(0, 5)) == 0)
        for each in (*places[count:], *(each for each in signature.parameters if each.kind == "keyword"))
        if each.kind != "positional" and (not each.optional or draw(st.booleans()))
    ]
    if signature.has("rest_keywords") and draw(st.booleans()):
        by_name.append(Argument("value_unknown", "unknown"))
    return found + draw(st.permutations(by_name))


def given_to(signature: Signature, arguments: Sequence[Argument]) -> dict[str, Any]:
    """Return what Python gives to each parameter; TypeError where it refuses the call."""
    made = inspect.Signature(
        [
            inspect.Parameter(each.name, PYTHON[each.kind], default=LEFT_OUT if each.optional else inspect._empty)
            for each in signature.parameters
        ]
    )
    by_name = {each.name: each.value for each in arguments if each.name}
    assert len(by_name) == sum(bool(each.name) for each in arguments), "no name twice"
    first_name = next((at for at, each in enumerate(arguments) if each.name), len(arguments))
    assert not any(not each.name for each in arguments[first_name:]), "nothing by place behind a name"
    bound = made.bind(*(each.value for each in arguments if not each.name), **by_name)
    bound.apply_defaults()
    return dict(bound.arguments)


def written(arguments: Sequence[Argument], placed: Sequence[Placed]) -> list[Argument]:
    return [Argument(each.value if each.number is None else arguments[each.number].value, each.name) for each in placed]


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_every_value_goes_to_the_parameter_that_it_went_to(data: st.DataObject) -> None:
    every_value_goes_where_it_went(data)


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(st.data())
def test_every_value_goes_to_its_parameter_in_thousands_of_calls(data: st.DataObject) -> None:
    every_value_goes_where_it_went(data)


def every_value_goes_where_it_went(data: st.DataObject) -> None:
    change = data.draw(changes())
    arguments = data.draw(calls(change.old))
    before = given_to(change.old, arguments)
    placed = repair_arguments(arguments, change, "python", lambda name: name == "epsilon")
    if placed is None:
        return
    now = given_to(change.new, written(arguments, placed))
    for name, value in before.items():
        is_now = change.now(name)
        if is_now is not None and is_now.kind not in ("rest", "rest_keywords"):
            assert now[is_now.name] == value, "what was given is given still, and nothing else"
        elif is_now is not None:
            assert now[is_now.name] == value
    for each in change.added:
        if each.optional:
            assert now[each.name] == LEFT_OUT
        elif each.kind not in ("rest", "rest_keywords"):
            assert (each.name, now[each.name]) == ("epsilon", "epsilon"), "only what is in scope there"
    kept = [each.number for each in placed if each.number is not None and arguments[each.number].effects]
    assert kept == [at for at, each in enumerate(arguments) if each.effects], "effects stay, in their order"


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None)
@given(st.data())
def test_a_call_of_an_unchanged_signature_needs_nothing(data: st.DataObject) -> None:
    signature = data.draw(changes()).old
    arguments = data.draw(calls(signature))
    placed = repair_arguments(arguments, SignatureChange(signature, signature), "python", lambda name: True)
    assert placed is not None
    assert given_to(signature, written(arguments, placed)) == given_to(signature, arguments)
    if [each for each in arguments if each.name] == sorted(
        (each for each in arguments if each.name), key=lambda each: arguments.index(each)
    ):
        assert needs_nothing(arguments, placed)


def places_of(names: Sequence[str], optional: Sequence[str] = (), annotation: str = "") -> Signature:
    return Signature(tuple(Parameter(name, "positional", name in optional, annotation) for name in names))


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(st.data(), st.sampled_from(("script", "go")))
def test_by_place_every_value_goes_where_its_parameter_is(data: st.DataObject, family: Family) -> None:
    old_names = data.draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=5))
    new_names = data.draw(st.permutations([name for name in old_names if data.draw(st.integers(0, 3))]))
    added = [name for name in NAMES if name not in old_names and data.draw(st.booleans())]
    new_names = [*new_names, *added]
    optional = new_names[len(new_names) - data.draw(st.integers(0, len(new_names))) :] if family == "script" else []
    arguments = [Argument(f"value_{name}") for name in old_names]
    change = SignatureChange(places_of(old_names), places_of(new_names, optional))
    placed = repair_arguments(arguments, change, family, lambda name: name == NAMES[0])
    needed = [name for name in added if name not in optional]
    if placed is None:
        gone = set(old_names) - set(new_names)
        assert set(needed) - {NAMES[0]} or (gone and added), "only what has no value is not plain"
        return
    values = [each.value for each in written(arguments, placed)]
    for name, value in zip(new_names, values, strict=False):
        wanted = f"value_{name}" if name in old_names else name if name in needed else "undefined"
        assert value == wanted
    assert all(name in optional for name in new_names[len(values) :])


@pytest.mark.parametrize(
    ("annotation", "family", "value"),
    [
        ("int | None", "python", "None"),
        ("None | int", "python", "None"),
        ("Optional[int]", "python", "None"),
        ("list[int | None]", "python", ""),
        ("int", "python", ""),
        ("", "python", ""),
        ("string | undefined", "script", "undefined"),
        ("string | null", "script", "null"),
        ("Array<string | undefined>", "script", ""),
        ("*int", "go", ""),
    ],
)
def test_only_an_optional_type_has_a_value_that_says_nothing(annotation: str, family: Family, value: str) -> None:
    assert empty_value(Parameter("x", annotation=annotation), family) == value


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([Argument("*all", spread="places")], "nobody knows what is in it"),
        ([Argument("1"), Argument("**more", spread="names")], "it may be in there"),
        ([Argument("1"), Argument("2"), Argument("3")], "it was no right call before"),
        ([Argument("1", "other")], "nor was this"),
        ([], "nor this"),
    ],
)
def test_what_is_not_plain_is_left(arguments: list[Argument], why: str) -> None:
    old = Signature((Parameter("alpha"),))
    new = Signature((Parameter("alpha"), Parameter("beta", annotation="int | None")))
    assert repair_arguments(arguments, SignatureChange(old, new), "python", lambda name: True) is None, why


def test_a_spread_call_keeps_names_that_it_gives() -> None:
    old = Signature((Parameter("alpha"), Parameter("beta")))
    new = Signature((Parameter("alpha"), Parameter("gamma")))
    arguments = [Argument("*all", spread="places"), Argument("2", "beta")]
    placed = repair_arguments(arguments, SignatureChange(old, new, {"beta": "gamma"}), "python", lambda name: False)
    assert placed == (Placed(0), Placed(1, "gamma"))


BODY = "    use(beta)\n    return alpha\n"


@pytest.mark.parametrize(
    ("old", "new", "bodies", "found"),
    [
        (("alpha", "beta"), ("alpha", "gamma"), (BODY, BODY.replace("beta", "gamma")), {"beta": "gamma"}),
        (("alpha", "beta"), ("alpha", "gamma"), (BODY, "    use(1)\n    other(gamma)\n"), {}),
        (("alpha", "beta"), ("alpha",), (BODY, "    return alpha\n"), {}),
        (("alpha", "beta"), ("gamma", "beta", "delta"), (BODY, BODY.replace("alpha", "gamma")), {"alpha": "gamma"}),
    ],
)
def test_a_parameter_is_the_same_one_where_the_body_uses_it_alike(
    old: tuple[str, ...], new: tuple[str, ...], bodies: tuple[str, str], found: dict[str, str]
) -> None:
    before, after = (Signature(tuple(map(Parameter, names))) for names in (old, new))
    assert renamed_parameters(before, after, bodies) == found
