#!/bin/sh
# Prints the folder of the official TypeScript library of the Agent Client Protocol in the user's cache, fetched once.
# Needs npm; tests look for it in CODEAGENT_ACP_SDK.
set -eu

place="${XDG_CACHE_HOME:-$HOME/.cache}/codeagent-lsp/acp-sdk-2.4.0"
if [ ! -e "$place/made" ]; then
    rm -rf "$place"
    mkdir -p "$place"
    npm install --prefix "$place" --no-audit --no-fund --ignore-scripts "@agentclientprotocol/sdk@2.4.0" "zod@4" >&2
    touch "$place/made"
fi
echo "$place/node_modules/@agentclientprotocol/sdk"
