"""Every folder of tools declares what it offers, everything declared is there, and nothing in it is left out."""

import sys
from importlib import import_module
from pathlib import Path
from subprocess import run

import pytest

from codeagent_lsp import tools
from codeagent_lsp.tools import Feature
from codeagent_lsp.tools.catalogue import BUILTIN, FEATURES
from codeagent_lsp.tools.tool import Tool

FOLDER = Path(tools.__file__).parent


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_a_feature_declares_all_tools_of_its_folder(feature: Feature) -> None:
    found = set()
    for path in (FOLDER / feature.name).glob("*_tools.py"):
        module = import_module(f"{tools.__name__}.{feature.name}.{path.stem}")
        found |= {
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, Tool) and value.__module__ == module.__name__
            and hasattr(value, "traits")
        }  # fmt: skip
    assert found == set(feature.load())


def test_every_folder_with_tools_is_a_feature() -> None:
    assert {path.parent.name for path in FOLDER.glob("*/*_tools.py")} == {feature.name for feature in FEATURES}
    assert len(BUILTIN) == len({tool.traits.name for tool in BUILTIN})


def test_a_declaration_loads_no_tool() -> None:
    code = (
        "import sys; from codeagent_lsp.tools import files, web; "
        "assert not [name for name in sys.modules if name.endswith('_tools') or name == 'pydantic']"
    )
    assert run([sys.executable, "-c", code], check=False).returncode == 0
