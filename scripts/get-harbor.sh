#!/bin/sh
# Prints the path of a `harbor` in an environment of its own in the user's cache, made once. Harbor needs Python 3.12 or newer.
set -eu

place="${XDG_CACHE_HOME:-$HOME/.cache}/codeagent-lsp/harbor"
newer="import sys; sys.exit(sys.version_info < (3, 12))"

if [ ! -e "$place/made" ]; then
    python=""
    for candidate in python3 python3.14 python3.13 python3.12 "$HOME"/.pyenv/versions/3.1[2-9]*/bin/python3; do
        [ -n "$python" ] || ! "$candidate" -c "$newer" >/dev/null 2>&1 || python="$candidate"
    done
    [ -n "$python" ] || exit 1
    rm -rf "$place"
    mkdir -p "${place%/*}"
    "$python" -m venv "$place" >&2
    "$place/bin/python" -m pip install -qqq --disable-pip-version-check "harbor==0.26.0" >&2
    touch "$place/made"
fi
echo "$place/bin/harbor"
