"""Classification of paths as targets of deletion or writing: the system, a home folder, a device, settings of a
program.

Judged by the text alone. Not here: what workspace files run later (`workspace/files/sensitive.py`), confinement
(`workspace/files/paths.py`).
"""

from __future__ import annotations

import fnmatch
import posixpath
import re

from codeagent_lsp.workspace.files import sensitive

_SYSTEM = frozenset(
    """
    / /bin /boot /dev /etc /home /lib /lib32 /lib64 /libx32 /opt /proc /root /run /sbin /srv /sys /usr /usr/bin
    /usr/lib /usr/local /usr/sbin /usr/share /var /var/lib /var/log /Users /System /Library /Applications /private
    /Volumes /mnt /media c: c:/ /c /mnt/c
    """.casefold().split()
)
_HOME = re.compile(r"~[\w.-]*|/home/[^/]+|/users/[^/]+|/var/root")
# `~/..` and `~user/../..`.
_ABOVE_HOME = re.compile(r"~[\w.-]*(?:/+\.{1,2})+/*")
_PATTERN = re.compile(r"[?*\[]")
_GLOB_TOP = re.compile(r"/[?*\[][^/]*")
# `/*`, `/.*`, `/{*,.*}`, `/.[!.]*`, `/.`: all that is in a folder.
_ALL_OF_IT = re.compile(r"(?:/(?:\*\*?|\.\*|\{\*,\.\*\}|\.\?\*|\.\[!\.\]\*|\.))+/?$|/+$")
_LONGEST = 4_096  # no system call takes a longer path
_LONGEST_PATTERN = 64
_SLASHES = re.compile(r"//+")
# Everything in /dev but streams, terminals and bash's network paths.
_DEVICE = re.compile(
    r"/dev/(?!(?:null|zero|full|tty|stdin|stdout|stderr|random|urandom|ptmx)$|(?:fd|shm|pts|tcp|udp)/).+"
)
_CRITICAL = re.compile(
    r"/etc/(?:passwd|shadow|group|gshadow|sudoers(?:\.d/.*)?|fstab|ld\.so\.preload|crontab|cron\..*|pam\.d/.*|hosts)"
    r"|/boot/.*|/proc/sysrq-trigger|/proc/sys/.*|/sys/.*|/var/spool/cron/.*"
)


def is_catastrophic(path: str) -> bool:
    """Return whether removing this path recursively would remove the system or a home folder."""
    whole = _whole(path)
    if len(path) <= _LONGEST and _ABOVE_HOME.fullmatch(path):
        return True
    # Without case, as macOS and Windows compare names; the table has their folders and drives, too.
    return whole in _SYSTEM or bool(_HOME.fullmatch(whole) or _GLOB_TOP.fullmatch(whole)) or _may_be_system(whole)


def is_device(path: str) -> bool:
    """Return whether the path is a device other than a harmless stream, such as a disk or memory."""
    return bool(_DEVICE.fullmatch(_normal(path)))


def is_critical(path: str) -> bool:
    """Return whether the path is a file that the system depends on."""
    return bool(_CRITICAL.fullmatch(_normal(path)))


def is_settings(path: str) -> bool:
    """Return whether the path is a settings file that determines what an editor, an agent, a shell or git runs."""
    return sensitive.is_settings([part for part in _normal(path).split("/") if part])


def joined(folder: str, path: str) -> str:
    """Return `path` as seen after `cd folder`."""
    return path if path.startswith(("/", "~")) or not folder else f"{folder[:_LONGEST]}/{path}"


def _may_be_system(path: str) -> bool:
    """Return whether a pattern of file names, such as `/e*c`, matches a folder of the system."""
    if not path.startswith("/") or not _PATTERN.search(path) or len(path) > _LONGEST_PATTERN:
        return False
    alike = (name for name in _SYSTEM if name.count("/") == path.count("/"))
    return any(fnmatch.fnmatchcase(name, path) for name in alike)


def _whole(path: str) -> str:
    """Return the folder meant by a pattern for all its contents: `/etc/*` is `/etc`."""
    if len(path) > _LONGEST:
        return path
    path = _SLASHES.sub("/", path)
    text = _ALL_OF_IT.sub("", path)
    # Patterns may stand one behind the other: `/etc/./*`.
    while text != path:
        path, text = text, _ALL_OF_IT.sub("", text)
    return _normal(text or "/").casefold()


def _normal(path: str) -> str:
    return posixpath.normpath(_SLASHES.sub("/", path)) if 0 < len(path) <= _LONGEST else ""
