"""Judgement of values beside a sensitive name: a real secret, or a placeholder, a reference, a type, code, prose.

Not here: names (`names.py`) and finding values in a text (`assignments.py`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from codeagent_lsp.records.mark import MARK
from codeagent_lsp.records.names import SECRET_WORDS

LONGEST_PLACEHOLDER = 80
# How a password is stored, as LDAP and Spring write it before the password: `{noop}…`.
_SCHEME = re.compile(
    r"\A\{(?i:noop|plain|cleartext|bcrypt|crypt|cipher|s?sha\d*|s?md5|(?:argon|pbkdf|scrypt)[\w@.]*)\}(?=\S{4})"
)
LONG = 16
_CACHED, _SHORT = 4096, 400  # judgements that are remembered, and the characters of the values they are about
SHORTEST_SCRAMBLED, SHORTEST_PART, SCRAMBLED_HEAD = 12, 10, 64

_STOP_WORDS = """
    none null nil true false undefined void self this str string text bytes bytearray char int integer float double
    bool boolean number any object unknown never optional required missing invalid incorrect wrong hidden empty
    unset redacted masked removed dummy fake sample placeholder example default todo tbd test testing n/a na no yes
    on off password passwd passphrase pass pwd secret token apikey api_key api-key access_token auth key value var
    variable changeme change_me change-me foo bar baz foobar prompt ask input env file stdin header cookie query
    body basic bearer digest oauth oauth2 jwt inherit write read none. is was the a an for in of and or to with must
    should can may not as if when that which your my our new old type field secretstr error ok expired valid public
    username user name email options option flag flags argument arguments nextchar secret_key supersecret mysecret
    mypassword mytoken xxxx disabled enabled await async function typeof instanceof yield 字符串 无 空 必填 可选 错误
"""
_WORDS_THAT_SAY_NOTHING = frozenset(_STOP_WORDS.split())
_PLACEHOLDER = re.compile(
    r"""(?ix:
      <[^<>]*>                                   # <your key>
    | \$\{.*\}? | \$\(.* | \$[a-z_]\w* | \$env:\w+ | %[a-z_]\w*% | %\(?\w*\)?[sdr]? | @[a-z_]\w*@
    | (?:%\(?\w*\)?[sdr](?:\\[nrt]|[:/\ -])?)+ | \{\{.*\}\} | f?\{[^{}]*\} | \#\{.*\} | .*\{[a-z_][\w.!:\[\]'"()]*\}.*
    | [.…*x•\-_?:]+ | 0+ | (?:1234567890|123456789|12345678)0*
    | \[(?:redacted|filtered|hidden|masked|secret)[^\]]*\]
    | (?:your|my|the|some|insert|enter|add|put|replace|set)[-_ ].* | .*[-_ ]here | .*(?:placeholder|redacted).*
    | (?:sk|pk|ghp|gho|xoxb|hf|glpat|npm|key|token)[-_](?:x{3,}|\.{3,}|\*{3,}|…|your[-_\w]*|test|xxx[-_x]*)
    | change[-_]?(?:me|it|this)\S* | (?:dummy|fake|example|sample)[-_]?(?:key|token|secret|password|value|api[-_]?key)?
    )"""
)
_VERSION = re.compile(
    r"(?:[a-z][\w.-]{0,60}:)?[~^>=<v ]{0,3}\d{1,4}(?:\.\d{1,6}){2,3}"
    r"(?:[-.](?:alpha|beta|rc|dev|pre|next|canary|final|release|post)[\w.]{0,10})?",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.@ -]+(?:[/\\][\w.@ -]+)+[/\\]?|[\w./-]+\.(?:pem|key|txt|json|ya?ml|crt|py)"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
LEAST_BASE64 = 20  # characters
_TYPE = re.compile(r"&?(?:'\w+ )?[A-Za-z_][\w.:]*[!?]?(?:[\[<].*)?")
_CHAIN = re.compile(r"[A-Za-z_]\w{0,15}(?:(?:\.|->|::|\?\.)[A-Za-z_]\w{0,23})+")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_]*")
_CAPITALISED = re.compile(r"(?:[A-Z][a-z]+)+")
_PROSE = re.compile(r"[^\W\d_][\w'’,.:;!?()/-]*(?:[ \t]+[\w'’,.:;!?()/&{}%\"-]+){2,}")
_PATTERN = re.compile(r"[\[^(].*[\])][*+?]?\$?|.*(?:\\[wdsWDSb]|\(\?|\[\^).*")  # a regular expression
_HEADER_NAME = re.compile(r"(?:[A-Z][a-z]*-)+[A-Z][a-z]+")
_PHRASE = re.compile(r"(?:[a-z]{3,12}[ -]){3,}+[a-z]{1,12}")
LEAST_OF_SEED = 12  # words of a mnemonic seed phrase (BIP 39)
LEAST_OF_PHRASE, LEAST_APART = 4, 6  # words of a passphrase right behind its name in quotes, and elsewhere
# Words that sentences and captions have and a passphrase, made of words by chance, has not.
_OF_SENTENCES = frozenset(
    """
    the and for you your our with without from that this are not has have had was will can cannot could may might must
    should shall when where which while who whose why how what than then there here does did been being into onto only
    also any all each both either none one two three four eight more most least less same such some every other
    another about above below after before again already still via per out off over under between within
    please enter type choose confirm repeat change reset forgot click use used using user name email login sign log set
    get given give keep need needs needed require requires required missing invalid incorrect wrong match matches
    matching minimum maximum long short length character characters letter letters word words number numbers value
    values field optional default example text string line file files path page account server database connection
    error failed access new old current next last first
    der die das den dem des ein eine einen und oder mit ohne von vom zum zur bei bitte ihr ihre ihren sie ist sind nicht
    wird werden muss neues neue altes eingeben wiederholen mindestens zeichen
    les des une est pas pour avec dans votre vos entrez saisissez nouveau
    los las una con sin por para que del esta este debe introduzca escriba nueva
    non con che per della del una inserisci nuova uma com para sua digite nova
    een het met niet voor van uw voer
    """.split()  # noqa: SIM905
)
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://\S*", re.IGNORECASE)
_ID = re.compile(r"(?:call|toolu|fc|run|chatcmpl|msg|resp|thread|step|task|req)[_-]")
_NAMED_WITH_NUMBER = re.compile(  # 0x0001, sha256, base64, utf-8, x86_64, python3.12, v2.10, RFC-6749, 2024-01-01, 10px
    r"(?i:(?:sha|shake|aes|des|rsa|dsa|base|utf|iso|cp|md|ed|ecdsa|curve|secp|nist|x|u?int|float|oauth|pbkdf|argon|bcrypt"
    r"|scrypt|blake|http|tls|ssl|win|ipv|python|py|java|node|es|v|ver|version|step|chapter|section|room|user|option|field"
    r"|line|test|case|part|level|phase|issue|bug|pr|rfc|cve|pep|iteration|attempt|port|page|item|table|figure|example"
    r"|api|amd|arm|armv|mp|h|vt|ps|rc|beta|alpha|year|fy|q)[-_. ]?\d)|0x[0-9a-f]{1,8}\Z|\d[\d.,:/-]*[A-Za-z%]{0,3}\Z|#"
)
_IDENTIFIER_OR_WORDS = re.compile(r"[A-Za-z_][\w-]*")
_SEPARATORS = re.compile(r"[\W_]+")
_PARTS = re.compile(r"[-_./:=]")
_LONGEST_RUNS = 4.6  # characters of a run on average, and signs between them: more than what is scrambled has
_RUNS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NO_SECRET = re.compile(  # addresses in memory and of machines, dates, colours and code points, hashes by their name
    r"0[xX][0-9A-Fa-f]{1,16}\Z|(?:[0-9A-Fa-f]{2}[:-]){5,}|[0-9]{4}-[0-9]{2}-|(?:sha|md)[0-9]{1,3}[-:=$]"
    r"|h1:[A-Za-z0-9+/]{43}=|[a-z][\w+.-]*://"
)
_FOLLOWING = """
    aabcdefghijklmnopqrstuvwyz babeijlnorsuy cacehijklnoprstuyz dacdefiklnoprstuvyz eabcdefghijklmnopqrstuvwxyz
    faefilorstu gaeghijklnorstuy hadeijklnortuvy iabcdefghijklmnopqrstuvwxyz jadeiklmnostu kacehiklnorstuvy
    lacdefghijklmnostuvyz mabeiklmnoprstuy nabcdefghijklmnostuvyz oabcdefghijklmnoprstuvwxyz pacdefilnoprstuyz qu
    rabcdefghijklmnoqrstuvwxyz sacefghijklmnopqrstuwyz tacefhijklmnoprstuvwyz uabcdefghijklmnoprstuvwxyz vaeilnorstuy
    waehilnorsuy xaceipt yabcdefghijklmnoprstuvwyz zabcdegiklmnopstuvwyz
"""
"""Each letter, then those that follow it in words: as more than six of ten thousand pairs in the messages of programs
in one of fifteen languages of Europe and Asia, without accents, or in the names of Python's library.
"""
_PAIRS = frozenset(f"{row[0]}{letter}" for row in _FOLLOWING.split() for letter in row[1:])
_LETTERS = re.compile("[a-z]{2,}")
_CHOSEN_SIGN = re.compile(r"[!#$%&~@]")
# Addresses, references, patterns, calls, hours and dates, pages of a manual.
_NO_CHOSEN = re.compile(
    r"[^@\s]+@[^@\s]+\.[a-z]{2,}\Z|\A[$%@&*#0-9]|[(){}\[\]<>\\]|\*\Z|%[0-9A-F]{2}|%[sdif]\b"
    r"|\A[A-Z][a-z]+[0-9]{1,4}\Z|\A/|//"
)
_WORDS = re.compile(r"[^\W\d_]+(?:[ '’][^\W\d_]+)*[.:!?…]*")
_CAPITAL_FIRST = re.compile(r"[A-Z][a-z]+(?:[ -][A-Za-z][a-z]*)*[.:!?…]*")
_SPACE = re.compile(r"\s")
_DIGIT = re.compile(r"[0-9]")
_LETTER = re.compile(r"[A-Za-z]")
_UPPER = re.compile(r"[A-Z]")
_LOWER = re.compile(r"[a-z]")
_HEXADECIMAL = re.compile(r"0[xX][0-9A-Fa-f]{1,8}[uUlL]{0,3}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}[uUlL]{0,3}|0[xX][0-9A-Fa-f]{1,8}")
_OF_ERRORS = frozenset(
    """
    bad invalid wrong incorrect err error errors expired missing unknown unauthorized duplicate revoked weak malformed
    failed failure unsupported mismatch empty short reused locked
    """.split()  # noqa: SIM905
)
_TYPES_OF_JS = frozenset(("function", "symbol", "bigint"))
_PART_OF_NAME = r"[a-z]+[0-9]{0,3}|[0-9]{1,3}|v[0-9]{1,3}"
_NAME_OF_OBJECT = re.compile(rf"[a-z](?:{_PART_OF_NAME})?(?:[-.](?:{_PART_OF_NAME})){{0,12}}")
_NAME_IN_CAPITALS = re.compile(r"[A-Z]+[0-9]{0,3}(?:_[A-Z]+[0-9]{0,3})+")
_NAME_IN_SMALL = re.compile(r"[a-z]+[0-9]{0,3}(?:_[a-z]+[0-9]{0,3})*_[a-z]+")
LONGEST_NAME_OF_OBJECT = 63  # DNS-1123


def is_no_secret(name: str, value: str) -> bool:
    """Return whether a value whose name is that of a secret is certainly not one: the number of an error, or the name
    of an object.
    """
    return _is_number_of_error(name, value) or _is_name_of_object(name, value)


def _is_number_of_error(name: str, value: str) -> bool:
    """Return whether a value is the number of an error that is about a secret: `BAD_PASSWORD = 40101`."""
    return bool(_NUMBER.fullmatch(value)) and not _OF_ERRORS.isdisjoint(_words(name))


def _is_name_of_object(name: str, value: str) -> bool:
    """Return whether a value names what holds the secret elsewhere, as in `existingSecret: my-release-db`."""
    short = len(value) <= LONGEST_NAME_OF_OBJECT and "existing" in name.lower()
    return short and bool(_NAME_OF_OBJECT.fullmatch(value))


def is_hexadecimal_constant(value: str) -> bool:
    """Return whether a value is, as a whole, a short number as code has it, such as `0x0001`."""
    return bool(_HEXADECIMAL.fullmatch(value))


def is_type_of_js(value: str, operator: str) -> bool:
    """Return whether a value is one that JavaScript's `typeof` is compared with, such as `string` behind `===`."""
    return value in _TYPES_OF_JS and "==" in operator


def is_other_name(value: str) -> bool:
    """Return whether a value is itself the name of a secret, as in a list of such names: `"CACHING_SHA2_PASSWORD"`."""
    named = len(value) <= LONGEST_PLACEHOLDER and (
        _NAME_IN_CAPITALS.fullmatch(value) or _NAME_IN_SMALL.fullmatch(value)
    )
    return bool(named) and not SECRET_WORDS.isdisjoint(_words(value))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _RUNS.findall(name)]


def is_placeholder(value: str) -> bool:
    """Return whether `value` is not a secret itself: empty, a placeholder, a reference, a word such as `example`, or a
    mark.
    """
    head = value[:200]
    head = _SCHEME.sub("", head) if head.startswith("{") else head
    return (len(value) <= LONGEST_PLACEHOLDER or " " in head) and _is_placeholder(head)


@lru_cache(maxsize=_CACHED)  # texts that name secrets often say the same words about them
def _is_placeholder(head: str) -> bool:
    return not head or head.lower() in _WORDS_THAT_SAY_NOTHING or bool(_PLACEHOLDER.fullmatch(head)) or bool(
        MARK.fullmatch(head)
    )  # fmt: skip


def looks_random(value: str, *, least: int = 8) -> bool:
    """Return whether `value` looks like a generated token: at least `least` characters, no spaces, mixed characters.
    Words, paths and the like do not.
    """
    # Long values rarely come twice, and would only fill the cache.
    return len(value) >= least and (_looks_random(value) if len(value) <= _SHORT else _looks_random.__wrapped__(value))


@lru_cache(maxsize=_CACHED)
def _looks_random(value: str) -> bool:
    if _SPACE.search(value[:200]) or is_placeholder(value):
        return False
    if MARK.search(value):
        return True
    digits = len(_DIGIT.findall(value[:200]))
    if digits:
        # `utf-8`, `step_2`: words and a number.
        words = digits == 1 and len(value) < 20 and value.lower() == value and ("-" in value or "_" in value)
        # Of digits alone: short ones are counts and times, and a dot makes a fraction.
        return not words if _LETTER.search(value) else len(value) >= 16 and "." not in value
    return len(value) >= 16 and bool(_UPPER.search(value) and _LOWER.search(value)) and not _CHAIN.fullmatch(value)


def looks_generated(value: str) -> bool:
    """Return whether `value` is surely generated, and so a secret even under a name that does not say so: long, random,
    with three digits or more or scrambled, and not an id of a call or message by its prefix.
    """
    if len(value) < LONG or _ID.match(value) or not looks_random(value):
        return False
    return len(_DIGIT.findall(value[:200])) >= 3 or looks_scrambled(value)


def looks_spoken(value: str) -> bool:
    """Return whether `value` looks like a password given in a sentence: 6 characters or more with letters and at least
    two digits, and not the name of an algorithm, a version or the like.
    """
    digits = len(_DIGIT.findall(value[:256]))
    return digits >= 2 and looks_random(value, least=6) and not _NAMED_WITH_NUMBER.match(value)


def looks_chosen(value: str) -> bool:
    """Return whether `value` looks like a password and nothing else, wherever it is: 8 characters or more, with
    capitals, small letters and two digits, or with a digit and a sign that words and names do not have.
    """
    head = value[:256]
    if len(value) < 8 or not looks_random(value) or _is_path_or_version(value):
        return False
    if _NAMED_WITH_NUMBER.match(value) and not looks_scrambled(value):
        return False
    if _URL.match(value) or _NO_CHOSEN.search(head) or not _LETTER.search(head):
        return False
    digits = len(_DIGIT.findall(head))
    signs = bool(_CHOSEN_SIGN.search(head))
    return (digits >= 2 and bool(_UPPER.search(head) and _LOWER.search(head))) or (signs and digits >= 1)


def looks_scrambled(value: str) -> bool:
    """Return whether `value` is so irregular that it is a secret anywhere near a sensitive name: letters and digits, or
    capitals and small letters, change every two or three characters, as they do not in words.
    """
    if len(value) < SHORTEST_SCRAMBLED or not _may_be_irregular(value[:400]):
        return False
    if MARK.search(value) or _SPACE.search(value[:200]):
        return False
    # The longest part, as prefixes and ids around a token are words.
    head = max(_PARTS.split(value[:400]), key=len)[:SCRAMBLED_HEAD]
    if len(head) < SHORTEST_PART or not _irregular(head):
        head = value[:SCRAMBLED_HEAD]
        if not _irregular_as_a_whole(head):
            return False
    return not (len(set(head)) < 6 or _NO_SECRET.match(value) or is_placeholder(value) or _is_path_or_version(value))


@lru_cache(maxsize=16_384)  # the words of a text come again and again
def may_hold_scrambled(word: str) -> bool:
    """Return whether a word of up to 400 characters may be a part of a value that looks scrambled. False is certain,
    True is not.
    """
    if not _may_be_irregular(word) or not looks_random(word):
        return False
    parts = [part[:SCRAMBLED_HEAD] for part in _PARTS.split(word) if len(part) >= SHORTEST_PART]
    return any(_may_be_runs(part) for part in parts) or _irregular_as_a_whole(word[:SCRAMBLED_HEAD])


def _may_be_runs(part: str) -> bool:
    runs = len(_RUNS.findall(part))
    return len(part) <= _LONGEST_RUNS * runs or (runs >= 5 and _irregular(part))


def _may_be_irregular(text: str) -> bool:
    """Return whether a text has capitals and small letters, or two digits: most words have neither."""
    return not (text.islower() or text.isupper()) or len(_DIGIT.findall(text)) > 1


def _irregular(text: str) -> bool:
    # Words are a few long runs of one kind of characters; what is generated changes its kind all the time.
    runs = _RUNS.findall(text)
    characters, digits = sum(map(len, runs)), sum(map(str.isdigit, runs))
    # Mostly other signs: an expression or a pattern.
    if characters < 0.7 * len(text) or not _LETTER.search(text):
        return False
    if _UPPER.search(text) and _LOWER.search(text):
        return characters <= (2.6 if len(text) < LONG else 3.2) * len(runs)
    if len(text) >= LONG:
        return digits >= 2 and len(runs) >= (4 if digits < len(text) / 2 else 3)
    return digits >= 3 and characters <= 2.6 * len(runs)


def _irregular_as_a_whole(text: str) -> bool:
    return _irregular_throughout(text) or _unlike_words(text)


def _irregular_throughout(text: str) -> bool:
    """Return whether a text is irregular as a whole, with separators in it: `a1B-c2D_…`."""
    if len(text) < LONG or not (_UPPER.search(text) and _LOWER.search(text)) or len(_DIGIT.findall(text)) < 2:
        return False
    runs, longest = _RUNS.findall(text), max(_PARTS.split(text), key=len)
    # Names of several words have more separators and longer runs, or a word among them.
    characters = sum(map(len, runs))
    few_separators = 0.8 * len(text) <= characters <= 2.2 * len(runs)
    dense = characters <= 2 * len(runs) and sum(map(str.isdigit, runs)) >= 4
    return few_separators and (dense or len(longest) <= 2.6 * len(_RUNS.findall(longest)))


def _unlike_words(text: str) -> bool:
    """Return whether a text of 16 characters or more, with two digits, has letters that follow one another as in no
    word or name: a quarter of them, and three.
    """
    if len(text) < LONG or len(_DIGIT.findall(text)) < 2:
        return False
    pairs = [run[at : at + 2] for run in _LETTERS.findall(text.lower()) for at in range(len(run) - 1)]
    rare = sum(pair not in _PAIRS and pair[0] != pair[1] for pair in pairs)  # `xxxx` is written for a secret
    return len(pairs) >= 6 and rare >= 3 and 4 * rare >= len(pairs)


@lru_cache(maxsize=_CACHED)
def repeats(name: str, value: str) -> bool:
    """Return whether a value is only its own name again, or the end of it, in any notation, as in `CLIENT_SECRET =
    "client_secret"`.
    """
    if len(value) > LONGEST_PLACEHOLDER or not _IDENTIFIER_OR_WORDS.fullmatch(value):
        return False
    one, other = (_SEPARATORS.sub("", text).lower() for text in (name, value))
    return len(other) > 4 and (one.endswith(other) or ("_" in value and other.endswith(one)))


def quoted_reveals(value: str, *, sure: bool) -> bool:
    """Return whether a value that stands in quotes, given without them, is a secret. `sure` says that its name
    certainly denotes one; else only what looks generated, or a long phrase, is.
    """
    if not value.strip() or is_placeholder(value) or _URL.match(value) or _is_path_or_version(value):
        return False
    if _PATTERN.fullmatch(value[:400]) or _HEADER_NAME.fullmatch(value[:80]):
        return False
    # Words only, so no other rule would find it.
    if is_passphrase(value, LEAST_OF_PHRASE if sure else LEAST_OF_SEED):
        return True
    # A name that only may be one of a secret needs a value that looks like one.
    if not sure:
        return looks_random(value)
    if len(value) < 2 or is_label(value) or ("\n" in value and " " in value.split("\n")[0].strip()):
        return False
    return any(map(str.isalnum, value[:400])) and not _PROSE.fullmatch(value[:400])


def is_passphrase(value: str, least: int) -> bool:
    """Return whether a value is a phrase of at least `least` words, with blanks or hyphens between them, that make no
    sentence, such as a seed phrase.
    """
    head = value[:_SHORT]
    if not _PHRASE.fullmatch(head):
        return False
    words = re.split("[ -]", head)
    return len(words) >= least and _OF_SENTENCES.isdisjoint(words) and SECRET_WORDS.isdisjoint(words)


@lru_cache(maxsize=_CACHED)
def is_label(value: str) -> bool:
    """Return whether `value` reads like the caption of a field for a secret, as `Neues Kennwort` or `密码` do.

    Words with a capital first letter, words with letters beyond ASCII, and words of which one names a secret read so.
    """
    if len(value) > LONGEST_PLACEHOLDER or not _WORDS.fullmatch(value):
        return bool(_CAPITAL_FIRST.fullmatch(value))
    if not value.isascii() or _CAPITAL_FIRST.fullmatch(value):
        return True
    return any(word in SECRET_WORDS for word in re.split(r"\W+", value.lower()))


@lru_cache(maxsize=_CACHED)
def bare_reveals(value: str, after: str, *, sure: bool, tight: bool, whole_line: bool) -> bool:
    """Return whether an unquoted value is a secret.

    `after` is the character behind it ("" at the end), `sure` says that its name certainly denotes a secret, `tight`
    that there is no space around the operator, `whole_line` that name and value are alone on their line.
    """
    if is_placeholder(value) or _URL.match(value) or _is_path_or_version(value):
        return False
    if after in ("(", "[", "{") or value.endswith(("(", "[", "{")) or (len(value) < 100 and _CHAIN.fullmatch(value)):
        return False
    if not _DIGIT.search(value) and not MARK.search(value):
        return sure and _word_reveals(value, after, tight=tight, whole_line=whole_line)
    if _LETTER.search(value):
        return len(value) >= 5 if sure else looks_random(value)
    return sure and len(value) >= 4 and (tight or whole_line)


def _is_path_or_version(value: str) -> bool:
    """Return whether a value is a path, or a version as lists of packages have them (`"jsonwebtoken": "^9.0.2"`)."""
    if len(value) > 400:
        return False
    return bool((_PATH.fullmatch(value) and not _is_base64(value)) or _VERSION.fullmatch(value))


def _is_base64(value: str) -> bool:
    """Return whether a value that may be a path is rather in Base64, which has slashes as well: no folder has such a
    name.
    """
    part = max(value.split("/"), key=len)
    mixed = len(part) >= SHORTEST_PART and _UPPER.search(part) and _LOWER.search(part) and _DIGIT.search(value)
    return len(value) >= LEAST_BASE64 and bool(mixed and _BASE64.fullmatch(value)) and _irregular(part)


def _word_reveals(value: str, after: str, *, tight: bool, whole_line: bool) -> bool:
    """Return whether a value without digits is a weak password rather than a name in code."""
    if is_label(value):
        return False
    if _IDENTIFIER.fullmatch(value):
        if after in (",", ")", ";", "}", "]", "|", "?", "!") or "_" in value:
            return False
        return len(value) > 3 and (tight or whole_line) and not _CAPITALISED.fullmatch(value)
    if _TYPE.fullmatch(value) or len(value) < 6:
        return False
    return bool(_LETTER.search(value)) and (tight or whole_line)
