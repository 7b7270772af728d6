#!/bin/sh
# get-agent.sh NAME: prints the path of an agent that tests lend the editor to (opencode, claude, codex, gemini, qwen),
# or of a client that drives ours (acpx), in the user's cache, fetched once. Needs npm; tests look for it in CODEAGENT_
# and the name in capitals.
set -eu

name="${1:-}"
case "$name" in
acpx) version=0.19.1 package=acpx programs=".bin/acpx" ;;
opencode) version=1.18.33 package=opencode-ai programs="opencode-*/bin/opencode" ;;
claude) version=2.1.332 package=@anthropic-ai/claude-code programs="@anthropic-ai/claude-code-*/claude" ;; # 384 MB
codex) version=0.171.0 package=@openai/codex programs="@openai/codex-*/vendor/*/bin/codex" ;;              # 424 MB
gemini) version=0.61.0 package=@google/gemini-cli programs=".bin/gemini" ;;                                # 100 MB
qwen) version=0.24.4 package=@qwen-code/qwen-code programs=".bin/qwen" ;;                                  # 144 MB
*)
    echo "usage: sh scripts/get-agent.sh acpx | opencode | claude | codex | gemini | qwen" >&2
    exit 2
    ;;
esac
place="${XDG_CACHE_HOME:-$HOME/.cache}/codeagent-lsp/$name-$version"
if [ ! -e "$place/made" ]; then
    rm -rf "$place"
    mkdir -p "$place"
    npm install --prefix "$place" --no-audit --no-fund --ignore-scripts "$package@$version" >&2
    touch "$place/made"
fi
# A program for this machine comes as a package of its own.
for program in "$place"/node_modules/$programs; do
    if "$program" --version >/dev/null 2>&1; then
        echo "$program"
        exit 0
    fi
done
echo "$name $version does not run on this machine" >&2
exit 1
