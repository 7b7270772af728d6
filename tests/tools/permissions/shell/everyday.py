"""Commands of every day that only look: what a coding agent runs all the time, and must not ask about."""

from __future__ import annotations

_LINES = r"""
ls
ls -la
ls -lah src tests
ls -R src
ls -1 --color=never
ls *.py
ls src/*.py
ls -lt src | head -20
ls 2>/dev/null
ls src > /dev/null 2>&1 && echo yes
pwd
pwd -P
cd src
cd src && ls
cd src && cat main.py
cd ./src/app && pwd
cat README.md
cat -n src/main.py
cat src/main.py src/util.py
cat pyproject.toml | head -40
cat src/*.py | wc -l
cat package.json
cat .gitignore
cat Makefile Dockerfile
cat .github/workflows/ci.yml
head README.md
head -5 README.md
head -n 50 src/main.py
head -c 200 data.bin
tail -20 build.log
tail -n +100 src/main.py
tail -n 5 a.txt b.txt
wc -l src/main.py
wc -l src/*.py
wc -lwc README.md
wc -l < src/main.py
grep -n TODO src/main.py
grep -rn "def main" src
grep -rn --include=*.py "import os" .
grep -rn --include="*.ts" --exclude-dir=node_modules useState src
grep -E "^(class|def) " src/main.py
grep -c foo src/main.py
grep -il error build.log
grep -v "^#" settings.ini
grep -A 3 -B2 "raise ValueError" src/util.py
grep -rnw . -e "needle"
grep -rIl needle src | sort | uniq -c
grep -n "foo$" src/main.py
grep -oP "version\s*=\s*\K.*" pyproject.toml
grep -rn "a|b" src || echo none
grep -q foo src/main.py && echo found
grep -n 'price is $5' src/main.py
grep -- -x src/main.py
grep -Fx "a line" src/main.py 2>/dev/null
rg foo
rg -n "class \w+" src
rg --files
rg --files src | head
rg -g '*.py' -n import src
rg -tpy TODO
rg -l foo --type py
ls *.txt
wc -l data/*.csv
rg -i -C 3 error src tests
rg --count foo
rg -S --no-heading -n foo . | head -50
rg -e foo -e bar src
rg -U "a\nb" src
rg --json foo src
find . -name '*.py'
find . -type f -name "*.ts" -not -path "./node_modules/*"
find src -maxdepth 2 -type d
find . -name "*.py" | wc -l
find . \( -name "*.js" -o -name "*.ts" \) -print
find . ! -name "*.md" -type f
find . -size +1M -ls
find . -newer README.md -type f
find . -mtime -1 -printf "%p\n"
find . -path ./node_modules -prune -o -name "*.js" -print
find . -type f -empty
find . -iname readme.md -print0
sed -n 1,20p src/main.py
sed -n '10,40p' src/main.py
sed -n '5p' src/main.py
sed -n '$p' build.log
sed -n '1,$p' src/main.py
sed -n "100,\$p" src/main.py
sed 10q README.md
sed -n -e 3p README.md
sort names.txt
sort -u names.txt
sort -k2,2n -t: names.txt
sort names.txt | uniq -c | sort -rn | head
sort -rh sizes.txt
uniq names.txt
uniq -c names.txt
cut -d: -f1 names.txt
cut -d ',' -f 2-4 data.csv
cut -c1-80 src/main.py
tr -d '\r' < src/main.py
tr '[:lower:]' '[:upper:]' < names.txt
cat names.txt | tr ',' '\n'
paste -sd, names.txt
comm -12 a.txt b.txt
join a.txt b.txt
nl -ba src/main.py
tac build.log | head
rev names.txt
fold -w 80 README.md
column -t -s, data.csv
od -c data.bin | head
od -An -tx1 -N16 data.bin
xxd data.bin | head -5
xxd -l 64 data.bin
hexdump -C data.bin
strings data.bin
base64 data.bin
md5sum data.bin
sha256sum data.bin src/main.py
cksum data.bin
echo hi
echo "hello world"
echo -n done
echo -e "a\tb"
echo "it's fine"
echo 'no $expansion `here`'
echo ""
echo "rm -rf /"
echo 'sudo reboot'
echo a b c | wc -w
echo yes && echo no
printf '%s\n' a b c
printf 'done\n'
printf "%5.2f\n" 3.14159
printf '%d items\n' 5
test -f README.md
test -f README.md && echo yes
test -d src || echo missing
test ! -e build && echo "no build"
test -n "text"
test 3 -gt 2
test a = b
[ -f README.md ] && echo yes
[ -d src ] || echo no
[ "a" != "b" ]
true
false
true && false || echo x
:
stat src/main.py
stat -c %s src/main.py
stat --format='%n %s' src/main.py
file src/main.py
file -b data.bin
diff a.txt b.txt
diff -u a.txt b.txt
diff -y --width=120 a.txt b.txt
diff -q a.txt b.txt || true
cmp a.txt b.txt
cmp -s a.txt b.txt && echo same
basename src/main.py .py
basename /usr/lib/x.so
dirname src/app/main.py
realpath src/main.py
readlink -f src/main.py
which python3
which -a node npm
type ls
command -v rg
date
date +%Y-%m-%d
date -u "+%H:%M:%S"
date -d "yesterday" +%F
date --iso-8601=seconds
uname -a
uname -sr
whoami
id
id -u
hostname
nproc
arch
du -sh src
du -sh src tests | sort -h
du -h --max-depth=1 .
df -h
tree
tree -L 2
tree -L 2 -I node_modules src
tree -a -d
seq 1 10
seq 5 | tac
expr 1 + 2
sleep 1
jq . package.json
jq -r '.name' package.json
jq '.scripts | keys' package.json
cat package.json | jq -r .version
python3 --version
python --version
node --version
node -v
git --version
bash --version
ls; pwd; whoami
"""

EVERYDAY = (
    *_LINES.strip().split("\n"),
    "# what is here\nls -la\n\n# and how much\nwc -l src/main.py",
    "ls |\n  head -3",
    "cat README.md;",
    "echo 'two\nlines'",
    'echo "文档"',
    "grep -rn '中文' src",
    "pwd\nls -la\ncat pyproject.toml",
)
