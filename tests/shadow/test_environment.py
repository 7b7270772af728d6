"""What a command sees of the user's environment."""

from __future__ import annotations

import pytest

from codeagent_lsp.shadow.environment import DEFAULT_PATH, FIXED, is_secret, scrub_environment, with_own_programs_last

PASSED = {
    "HOME": "/home/somebody",
    "USER": "somebody",
    "SHELL": "/bin/bash",
    "TZ": "Europe/Vienna",
    "TMPDIR": "/var/tmp/mine",
    "LC_TIME": "de_AT.UTF-8",
    "VIRTUAL_ENV": "/home/somebody/project/.venv",
    "CONDA_PREFIX": "/opt/conda",
    "PYENV_ROOT": "/home/somebody/.pyenv",
    "PYTHONPATH": "/home/somebody/lib",
    "NVM_DIR": "/home/somebody/.nvm",
    "GOPATH": "/home/somebody/go",
    "GOFLAGS": "-mod=vendor",
    "CARGO_HOME": "/home/somebody/.cargo",
    "RUSTUP_HOME": "/home/somebody/.rustup",
    "JAVA_HOME": "/usr/lib/jvm/default",
    "CC": "clang",
    "CGO_ENABLED": "0",
    "SSL_CERT_FILE": "/etc/ssl/company.pem",
    "http_proxy": "http://proxy.example:3128",
}

LEFT_OUT = {
    # leads out
    "SSH_AUTH_SOCK": "/run/agent.sock",
    "SSH_AGENT_PID": "77",
    "GPG_AGENT_INFO": "/run/gpg:1:1",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/bus",
    "DISPLAY": ":0",
    "XAUTHORITY": "/home/somebody/.Xauthority",
    "WAYLAND_DISPLAY": "wayland-0",
    "XDG_RUNTIME_DIR": "/run/user/1000",
    "DOCKER_HOST": "unix:///run/docker.sock",
    "TMUX": "/tmp/tmux-1000/default,1,0",
    "NVIM": "/run/nvim.sock",
    "VSCODE_IPC_HOOK_CLI": "/run/vscode.sock",
    "KUBECONFIG": "/home/somebody/.kube/config",
    # makes programs load code, or obey
    "LD_PRELOAD": "/tmp/evil.so",
    "LD_LIBRARY_PATH": "/tmp",
    "LD_AUDIT": "/tmp/evil.so",
    "DYLD_INSERT_LIBRARIES": "/tmp/evil.dylib",
    "BASH_ENV": "/tmp/evil.sh",
    "ENV": "/tmp/evil.sh",
    "PROMPT_COMMAND": "evil",
    "PS4": "$(evil)",
    "SHELLOPTS": "xtrace",
    "BASH_FUNC_ls%%": "() { evil; }",
    "IFS": "/",
    "CDPATH": "/tmp",
    "PYTHONSTARTUP": "/tmp/evil.py",
    "PYTHONINSPECT": "1",
    "NODE_OPTIONS": "--require /tmp/evil.js",
    "PERL5OPT": "-Mevil",
    "RUBYOPT": "-revil",
    "JAVA_TOOL_OPTIONS": "-javaagent:/tmp/evil.jar",
    "GIT_DIR": "/elsewhere",
    "GIT_SSH_COMMAND": "evil",
    "GIT_CONFIG_COUNT": "1",
    "RUSTC_WRAPPER": "/tmp/evil",
    "MAKEFLAGS": "--jobserver-auth=3,4",
    "LESSOPEN": "|evil %s",
    # nobody knows it
    "MY_COMPANY_SETTING": "x",
    "CODEAGENT_STATE_DIR": "/somewhere",
}


@pytest.mark.parametrize("name", PASSED)
def test_what_tools_need_passes(name: str) -> None:
    assert scrub_environment(PASSED)[name] == PASSED[name]


@pytest.mark.parametrize("name", LEFT_OUT)
def test_everything_else_does_not(name: str) -> None:
    assert name not in scrub_environment({**PASSED, **LEFT_OUT})


@pytest.mark.parametrize("name", FIXED)
def test_nothing_asks_pages_or_paints(name: str) -> None:
    assert scrub_environment({name: "something else"})[name] == FIXED[name]


@pytest.mark.parametrize(
    "name",
    [
        *("API_TOKEN", "CLIENT_SECRET", "DB_PASSWORD", "PGPASSWORD", "GOOGLE_APPLICATION_CREDENTIALS", "NPM_AUTH"),
        *(
            "OPENAI_API_KEY",
            "OPENAI_APIKEY",
            "AWS_ACCESS_KEY_ID",
            "KEY",
            "SIGNING_KEY",
            "my_pass",
            "SENTRY_DSN",
            "GH_PAT",
        ),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name, "x")


@pytest.mark.parametrize("name", [*PASSED, "KEYBOARD", "MONKEY", "COMPASS", "PATH", "PWDX"])
def test_names_of_no_secrets(name: str) -> None:
    assert not is_secret(name, PASSED.get(name, "x"))


def secret_values() -> list[str]:
    """Built here, so that nothing of this shape stands in a file."""
    filler = "aB3" * 12
    return [
        f"http://somebody:{filler}@proxy.example:3128",
        "https://" + filler + "@example.org/simple",
        "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
        "sk" + "-" + filler,
        "gh" + "p_" + filler,
        "github" + "_pat_" + filler,
        "glpat" + "-" + filler,
        "xox" + "b-" + filler,
        "AK" + "IA" + "A1B2C3D4E5F6G7H8",
        "hf" + "_" + filler,
        "ey" + "J" + filler + "." + filler + "." + filler,
        "Bearer " + filler,
        "--proxy https://user:" + filler + "@example.org",
    ]


@pytest.mark.parametrize("number", range(len(secret_values())))
def test_a_secret_in_a_harmless_variable(number: int) -> None:
    value = secret_values()[number]
    assert is_secret("GOFLAGS", value)
    assert "GOFLAGS" not in scrub_environment({"GOFLAGS": value})


def test_a_prefix_does_not_let_secrets_pass() -> None:
    assert "LC_TOKEN" not in scrub_environment({"LC_TOKEN": "x"})


def test_folders_may_have_any_name() -> None:
    path = "/opt/sk-" + "something-rather-long/bin"
    assert scrub_environment({"PATH": path})["PATH"] == path


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/usr/bin:/bin", "/usr/bin:/bin"),
        (".:/usr/bin", "/usr/bin"),
        ("/usr/bin:", "/usr/bin"),
        ("node_modules/.bin:/bin::~/bin", "/bin"),
        ("", DEFAULT_PATH),
        ("bin", DEFAULT_PATH),
    ],
)
def test_no_program_comes_from_where_one_happens_to_be(given: str, expected: str) -> None:
    assert scrub_environment({"PATH": given})["PATH"] == expected


def test_there_is_always_a_path() -> None:
    assert scrub_environment({})["PATH"] == DEFAULT_PATH


@pytest.mark.parametrize(
    ("given", "name", "expected"),
    [
        ({}, "LC_CTYPE", "C.UTF-8"),
        ({"LANG": "C"}, "LC_CTYPE", "C.UTF-8"),
        ({"LANG": "zh_CN.GB18030"}, "LC_CTYPE", "C.UTF-8"),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, "LC_ALL", "C.UTF-8"),
        ({"LANG": "de_AT.utf8"}, "LANG", "de_AT.utf8"),
    ],
)
def test_text_is_utf8(given: dict[str, str], name: str, expected: str) -> None:
    assert scrub_environment(given)[name] == expected


def test_a_good_locale_is_left_alone() -> None:
    assert "LC_CTYPE" not in scrub_environment({"LANG": "de_AT.UTF-8"})


def test_what_we_add_wins() -> None:
    assert (
        scrub_environment({"HOME": "/a"}, {"HOME": "/b", "PAGER": "less", "NEW": "1"}).items()
        >= {
            "HOME": "/b",
            "PAGER": "less",
            "NEW": "1",
        }.items()
    )


def test_a_value_that_no_program_can_be_given() -> None:
    assert "TZ" not in scrub_environment({"TZ": "a\0b"})


def test_nothing_is_changed_in_place() -> None:
    given = dict(PASSED)
    scrub_environment(given)
    assert given == PASSED


def test_programs_of_the_workspace_come_last() -> None:
    path = "/ws/.venv/bin:/usr/bin:bin:/wsx/bin:/other/ws/bin::/bin"
    found = with_own_programs_last({"PATH": path, "LANG": "C"}, ["/ws", "/other"])
    assert found == {"PATH": "/usr/bin:/wsx/bin:/bin:/ws/.venv/bin:bin:/other/ws/bin", "LANG": "C"}
