#!/bin/sh
# Prints the path of opencode, another agent that tests lend the editor to, in the user's cache, fetched once.
# Needs npm; tests look for it in CODEAGENT_OPENCODE.
set -eu

version=1.18.33
place="${XDG_CACHE_HOME:-$HOME/.cache}/codeagent-lsp/opencode-$version"
if [ ! -e "$place/made" ]; then
    rm -rf "$place"
    mkdir -p "$place"
    npm install --prefix "$place" --no-audit --no-fund --ignore-scripts "opencode-ai@$version" >&2
    touch "$place/made"
fi
# The program for this machine comes as a package of its own.
for program in "$place"/node_modules/opencode-*/bin/opencode; do
    if "$program" --version >/dev/null 2>&1; then
        echo "$program"
        exit 0
    fi
done
echo "opencode $version does not run on this machine" >&2
exit 1
