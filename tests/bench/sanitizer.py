"""How fast texts are cleaned: `python -m tests.bench.sanitizer [--size BYTES]`.

Prints seconds per MB for ordinary texts and for texts made to be slow to search (one telling piece over and over);
exits with 1 when one takes longer than its goal.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from codeagent_lsp.records.sanitizer import Sanitizer

GOAL = 0.3  # seconds per MB of ordinary text
GOAL_ODD = 3.0  # of a text made to be slow
ODD = "only "
MB = 1_000_000


def texts(size: int) -> Mapping[str, str]:
    """Texts of `size` characters, by what they are."""
    rng = random.Random(7)
    package = Path(__file__).resolve().parents[2] / "codeagent_lsp"
    code = "\n".join(path.read_text("utf-8") for path in sorted(package.rglob("*.py")))
    log = "2025-01-01T00:00:00Z INFO request id={} path=/v1/items/{} took 12 ms user-agent=curl/8\n"
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    ordinary = {
        "source code": code,
        "log lines": "".join(log.format(number, number * 7) for number in range(2000)),
        "base64": "".join(rng.choices(alphabet, k=200_000)),
        "json": '{"name": "a", "value": 1, "items": [1, 2, 3], "url": "https://example.com/a/b"},\n' * 1000,
        "requests": '{"jsonrpc": "2.0", "method": "shared/list", "params": ["user", "on"]} off again\n' * 1000,
        "chinese": "这是一个没有秘密的普通句子，用来测试速度。\n" * 1000,
    }
    return {name: _long(text, size) for name, text in (ordinary | _adversarial()).items()}


def measure(text: str) -> float:
    """Seconds per MB, the better of two, each with a sanitizer that has not seen the text."""
    return min(_seconds(text) for _ in range(2)) * MB / len(text)


def main() -> int:
    """Print the table; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=MB)
    size = parser.parse_args().size
    slow = 0
    for name, text in texts(size).items():
        seconds = measure(text)
        goal = GOAL_ODD if name.startswith(ODD) else GOAL
        slow += seconds > goal
        print(f"{name:34} {seconds:7.3f} s/MB{'  too slow' if seconds > goal else ''}")
    return 1 if slow else 0


def _adversarial() -> dict[str, str]:
    """Texts that make a careless pattern try the same stretch again and again."""
    pieces = (
        "token", "token ", "token=", "token:", "password='", 'password="\\"', "pass:pass", "--token ", "secret=a.",
        "api_key_", "eyJ", "eyJ-", "eyJaaaaaaaa.", "sk-", "ghp_a", "://", "://a:", "://a:b", ":@", "?sig=", "&key=",
        "-----BEGIN PRIVATE " + "KEY-----", "-----END PRIVATE " + "KEY-----", "Bearer ", "Bearer a", "Authorization: ",
        "authorization=Basic ", "Cookie: a=b", "Cookie: a=b;", "/a", "/home/a", "\\", "\\\\\"", "\"", "'", "a", " ",
        "1", ":AA", "Q~", "1Q~", ".atlasv1.", "M", "MM.", "curl -u a:", "mysql -p", "login a password ", "<secret:",
        "<secret:000000>", "hooks.slack.com/services/", "password is ", "password: str = ", "{", "${", "\n", "export ",
        "api.", "key-", "xoxb-", "-us", "0-us", "SG.", "pass\n", "token\t\t\t\t", "password\\\\\\", "id=", "user_id=",
        "login(", 'login("a",', "def f(password)", "f(password", "value: a\nname: password\n", "password, a, ",
        "a, password = ", 'passwords = ["a", ', "passwords:\n - a\n", 'set_password("a", ', "がパスワード", "PAT=",
        "a is the password", "パスワードは「", "password «", "password a1b2 ", 'auth=("a",', "sudo -S <<<",
        "name: password\na: b\n",
        '"password" ', 'password "', "password|a\n---|---\n", "a,password\n", "password ?? ", "default password ",
        "password ?? 'a' ", "password\n  a1b2c3d4e5f6a7b8\n", "(a, password) values (", "<key>secret</key>",
        "secret a b c ",
    )  # fmt: skip
    return {f"{ODD}{piece!r}": piece for piece in pieces}


def _long(text: str, size: int) -> str:
    return (text * (size // max(1, len(text)) + 1))[:size]


def _seconds(text: str) -> float:
    sanitizer = Sanitizer(secrets=["a-key-of-our-own-" + "0123"])
    started = time.perf_counter()
    sanitizer.text(text)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
