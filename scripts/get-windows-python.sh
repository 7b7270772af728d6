#!/bin/sh
# Prints the folder of a Python for Windows with what the package needs, run by Wine, in the user's cache, made once.
# Needs root and apt for Wine and a C compiler for Windows, and pip; tests look for it in CODEAGENT_WINDOWS.
#
# Python for Windows comes in a wheel: Panda3D carries it for its own programs. Its library is that of the running Python,
# which must be of the same version.
set -eu

minor="$(python -c 'import sys; print("%d%d" % sys.version_info[:2])')"
version="$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
project="$(cd "$(dirname "$0")/.." && pwd)"
wanted="$minor $(sed -n '/^dependencies = \[/,/^\]/p' "$project/pyproject.toml" | cksum)"
place="${XDG_CACHE_HOME:-$HOME/.cache}/codeagent-lsp/windows"
if [ "$(cat "$place/made" 2>/dev/null)" = "$wanted" ]; then
    echo "$place"
    exit 0
fi
missing=""
command -v wine >/dev/null || missing="wine wine64"
command -v x86_64-w64-mingw32-gcc >/dev/null || missing="$missing gcc-mingw-w64-x86-64"
# shellcheck disable=SC2086 # words
[ -z "$missing" ] || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2

rm -rf "$place"
mkdir -p "$place/wheels" "$place/python/DLLs" "$place/python/Lib/site-packages"
for_windows="--only-binary=:all: --platform win_amd64 --python-version $version --disable-pip-version-check --quiet"
# shellcheck disable=SC2086 # words
python -m pip download $for_windows --no-deps --dest "$place/wheels" "panda3d==1.10.*" >&2
python - "$place" <<'PYTHON'
import pathlib, shutil, sys, sysconfig, zipfile

place = pathlib.Path(sys.argv[1])
python = place / "python"
(wheel,) = (place / "wheels").glob("panda3d-*.whl")
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        file = pathlib.PurePosixPath(name).name
        # What begins like this is a part of Windows, which Wine has.
        if name.startswith("deploy_libs/") and file.endswith((".dll", ".pyd")) and not file.startswith("api-ms-"):
            folder = python / "DLLs" if file.endswith(".pyd") else python
            (folder / file).write_bytes(archive.read(name))
wheel.unlink()
unused = shutil.ignore_patterns("site-packages", "__pycache__", "test", "lib-dynload", "idlelib", "tkinter", "config-*")
shutil.copytree(sysconfig.get_path("stdlib"), python / "Lib", ignore=unused, dirs_exist_ok=True)
PYTHON
sed -n '/^dependencies = \[/,/^\]/s/^ *"\([^"]*\)",/\1/p' "$project/pyproject.toml" | sed 's/;.*//' >"$place/needed"
# shellcheck disable=SC2086 # words
python -m pip install $for_windows --no-compile --target "$place/python/Lib/site-packages" --requirement "$place/needed" \
    colorama 2>"$place/pip.log" >&2 || { cat "$place/pip.log" >&2 && exit 1; }

compiler=x86_64-w64-mingw32-gcc
cat >"$place/main.c" <<'C'
#include <windows.h>
int wmain(int count, wchar_t **words) {
    HMODULE library = LoadLibraryW(PYTHON);
    int (*run)(int, wchar_t **) = (void *)GetProcAddress(library, "Py_Main");
    return run ? run(count, words) : 99;
}
C
$compiler -municode -DPYTHON="L\"python$minor.dll\"" -o "$place/python/python.exe" "$place/main.c"
# Rust asks Windows for random numbers by a library that this Wine lacks.
cat >"$place/random.c" <<'C'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return SystemFunction036(data, (ULONG)size); }
C
$compiler -shared -o "$place/python/bcryptprimitives.dll" "$place/random.c" -ladvapi32
# Modules for all versions of Python ask a library for its functions that leads to the one of this version.
{
    printf 'LIBRARY python3\nEXPORTS\n'
    find "$place/python/Lib/site-packages" -name '*.pyd' -exec x86_64-w64-mingw32-objdump -p {} + |
        awk -v to="python$minor" '/DLL Name:/ { inside = tolower($3) == "python3.dll"; next }
            inside && $NF ~ /^_?Py[A-Za-z0-9_]*$/ { print "  " $NF "=" to "." $NF }' | sort -u
} >"$place/python3.def"
echo 'int DllMain(void *a, unsigned b, void *c) { return 1; }' >"$place/empty.c"
$compiler -shared -o "$place/python/python3.dll" "$place/empty.c" "$place/python3.def"

# What starts it first makes a Windows of its own, with the Python on its disk.
export WINEPREFIX="$place/prefix" WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="
wine cmd /c exit >/dev/null 2>&1 </dev/null || true
mv "$place/python" "$place/prefix/drive_c/python"
# Wine gives a program no file to print to, so a pipe.
said="$(wine 'C:\python\python.exe' -c 'import pydantic, tree_sitter_python, psutil, sys; print(sys.platform)' </dev/null 2>&1 | cat)"
case "$said" in
*win32*) ;;
*) echo "Python does not run in Wine: $said" >&2 && exit 1 ;;
esac
printf '%s\n' "$wanted" >"$place/made"
echo "$place"
