"""Secrets on command lines without a sensitive name: `curl -u user:password`, `mysql -ppassword`, `.netrc`.

Not here: `--password value`, which is an assignment (`assignments.py`); real parsing of commands.
"""

from __future__ import annotations

import re

from codeagent_lsp.records.mark import Mark
from codeagent_lsp.records.values import is_placeholder

_M = r"<secret:[0-9a-f]{6}>"
_V = rf"(?:{_M}|[^\s\"'`;|&<>])"
_TOOLS = re.compile(
    r"(?:curl|wget|http|https|xh|mysql|mysqldump|mysqladmin|mariadb|mongosh?|redis-cli|sshpass|docker|podman|helm|"
    r"ldapsearch|smbclient|nexus|az|sqlcmd|rclone|skopeo|7z|zip|unzip|openssl|gpg|machine)\b[^\r\n]{1,4096}"
)
_USER = re.compile(
    r"(?P<head>(?:^|\s)(?:-u|--user|--proxy-user|-U|--creds|--src-creds|--dest-creds)[ =]?[\"']?[^\s:\"']{1,100}:)"
    rf"(?P<value>{_V}{{1,300}})"
)
_SHORT = re.compile(rf"(?P<head>(?:^|\s)-(?:p|a|w|P)[ ]?[\"']?)(?P<value>(?!-){_V}{{4,300}})")
_NETRC = re.compile(rf"(?P<head>login\s{{1,10}}\S{{1,200}}\s{{1,10}}password\s{{1,10}})(?P<value>{_V}{{1,300}})")
_OPENSSL = re.compile(rf"(?P<head>pass:)(?P<value>{_V}{{1,300}})")
_SHORT_TOOLS = (
    "mysql",
    "maria",
    "redis",
    "sshpass",
    "docker",
    "podman",
    "mongo",
    "ldap",
    "az",
    "sqlcmd",
    "7z",
    "zip",
    "unzip",
)


def mask_command_lines(text: str, mark: Mark) -> str:
    """Return `text` with passwords given to well-known programs masked."""
    if " -" in text or "\t-" in text or "pass:" in text:
        text = _TOOLS.sub(lambda match: _command(match[0], mark), text)
    if "login" in text and "password" in text:
        text = _NETRC.sub(lambda match: _masked(match, mark), text)
    return text


def _command(command: str, mark: Mark) -> str:
    command = _USER.sub(lambda match: _masked(match, mark), command)
    if command.startswith(_SHORT_TOOLS) and " -" in command:
        command = _SHORT.sub(lambda match: _short(match, mark, command), command)
    return _OPENSSL.sub(lambda match: _masked(match, mark), command) if command.startswith("openssl") else command


def _short(match: re.Match[str], mark: Mark, command: str) -> str:
    """Mask the value of a short option. To some programs `-p` is a port, a path or a project: those values are kept."""
    value = match["value"]
    flag = match["head"].strip().strip("\"'")
    glued = not match["head"].rstrip("\"'").endswith(" ")
    takes = {"mysql": glued and flag == "-p", "maria": glued and flag == "-p", "redis": flag == "-a"}
    for tool, fits in takes.items():
        if command.startswith(tool):
            return _masked(match, mark) if fits else match[0]
    if command.startswith(("docker", "podman")) and " login" not in command:
        return match[0]
    if flag in ("-a", "-P") and not command.startswith(("az", "sqlcmd", "zip", "unzip")):
        return match[0]
    return match[0] if value.replace(":", "").replace(".", "").isdigit() or "/" in value else _masked(match, mark)


def _masked(match: re.Match[str], mark: Mark) -> str:
    value = match["value"]
    return match[0] if is_placeholder(value) else match["head"] + mark(value)
