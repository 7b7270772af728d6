"""Secrets that stand apart from their name are masked; what only looks like them is not."""

from __future__ import annotations

import json

import pytest

from codeagent_lsp.records.sanitizer import Sanitizer

VALUE = "qT7f" + "Lm29xPz4" + "KcWb8sRn3"
FOR_MODELS = Sanitizer(identities=False, homes=())

APART = [
    f"password: |\n  {VALUE}\n",
    f"password: >-\n  {VALUE}\n",
    f"12|db_password: |\n13|  {VALUE}\n",
    f"password: &anchor {VALUE}\n",
    f"password: !vault {VALUE}\n",
    f'password = """\n{VALUE}\n"""\n',
    f'PASSWORD = (\n    "{VALUE}"\n)\n',
    f"password = [[{VALUE}]]\n",
    json.dumps({"password": {"value": VALUE}}),
    json.dumps(json.dumps({"password": {"value": VALUE}})),
    json.dumps({"passwords": ["one", VALUE][1:]}),
    f'const apiKey string = "{VALUE}"\n',
    f'set(API_KEY "{VALUE}")\n',
    f'variable "db_password" {{\n  type    = string\n  default = "{VALUE}"\n}}\n',
    f"psk={VALUE}\n",
    f"FERNET = '{VALUE}'\n",
    f"FERNET_KEY={VALUE}\n",
    f"Password:\n{VALUE}\n",
    f"user=a&password%3D{VALUE}&b=1",
    f"?q=%22password%22%3A%22{VALUE}%22",
    f"apiVersion: v1\nkind: Secret\ndata:\n  user: a\n  anything: {VALUE}\n",
    f"kind: Secret\nmetadata:\n  name: x\nstringData:\n  anything: '{VALUE}'\n",
]
NOT_SECRET = [
    "password: str = None\n",
    "password: |\n",
    "def f(password: str, token: int): ...\n",
    "password:\n  type: string\n",
    'passwords = ("one", "two words")\n',
    "key = [[1, 2], [3, 4]]\n",
    "secret_key: {value: 'str'}\n",
    'const token Token = "x"\n',
    'set(KEY_FILES "a.txt")\n',
    "Password:\nplease enter it\n",
    'keys: ["name", "value"]\n',
    'variable "region" {\n  default = "eu-central-1"\n}\n',
    "kind: ConfigMap\ndata:\n  mode: production\n",
    "# the secret:\n#   it is simple\n",
]


@pytest.mark.parametrize("text", APART)
def test_it_is_masked_and_nothing_else(text: str) -> None:
    masked = FOR_MODELS.text(text)
    assert VALUE not in masked
    assert masked.count("<secret:") == (2 if "kind: Secret" in text and "user: a" in text else 1)
    assert FOR_MODELS.text(masked) == masked


@pytest.mark.parametrize("text", NOT_SECRET)
def test_what_is_none_stays(text: str) -> None:
    assert FOR_MODELS.text(text) == text
