#!/bin/sh
# Takes the pictures of editors in a terminal into docs/media, by playing scenarios in the real editors in tmux:
# `sh scripts/terminal-pictures.sh [FOLDER [neovim|neovim-inline|neovim-together|emacs]...]`. Wants what
# `scripts/test.sh` installs, and .venv on PATH.
set -eu

cd "$(dirname "$0")/.."
folder="${1:-docs/media}"
[ $# -eq 0 ] || shift
NVIM="$(sh scripts/get-neovim.sh)"
export NVIM
exec python -m tests.clients.terminal.pictures "$folder" "$@"
