"""Replies that hold no new code: refusals, praise, explanations and server errors, in six languages, in many wrappings.

Made by a seed. Not here: reading them (`test_envelope.py`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator

_SUBJECTS = {
    "en": ["The code", "This function", "The selected code", "The loop", "Your implementation", "This method"],
    "zh": ["这段代码", "这个函数", "所选的代码", "这个循环", "您的实现", "该方法"],
    "de": ["Der Code", "Diese Funktion", "Der markierte Code", "Die Schleife", "Ihre Umsetzung", "Diese Methode"],
    "fr": ["Le code", "Cette fonction", "Le code choisi", "La boucle", "Votre version", "Cette méthode"],
    "es": ["El código", "Esta función", "El código elegido", "El bucle", "Su versión", "Este método"],
    "ja": ["このコード", "この関数", "選択されたコード", "このループ", "あなたの実装", "このメソッド"],
}
_VERDICTS = {
    "en": ["looks fine to me", "is already correct", "needs no change", "cannot be changed", "does what it should"],
    "zh": ["看起来没有问题", "已经是正确的", "不需要修改", "我无法修改", "符合要求"],
    "de": [
        "sieht gut aus",
        "ist schon richtig",
        "braucht keine Änderung",
        "lässt sich nicht ändern",
        "tut was er soll",
    ],
    "fr": ["me semble correct", "est déjà juste", "ne doit pas changer", "ne peut pas être changé", "fait son travail"],
    "es": ["me parece bien", "ya es correcto", "no necesita cambios", "no se puede cambiar", "hace lo que debe"],
    "ja": ["は問題ありません", "はすでに正しいです", "は変更不要です", "は変更できません", "は正しく動作します"],
}
_MORE = {
    "en": ["I am sorry, but I cannot do that.", "Please tell me more about the error.", "Error: rate limit exceeded"],
    "zh": ["抱歉，我无法修改这段代码。", "请告诉我更多关于错误的信息。", "错误：请求过于频繁，请稍后再试。"],
    "de": [
        "Leider kann ich das nicht tun.",
        "Bitte geben Sie mir mehr Angaben zum Fehler.",
        "Fehler: zu viele Anfragen",
    ],
    "fr": ["Désolé, je ne peux pas le faire.", "Dites-moi en plus sur cette erreur.", "Erreur : trop de requêtes"],
    "es": ["Lo siento, no puedo hacerlo.", "Dígame más sobre el error, por favor.", "Error: demasiadas solicitudes"],
    "ja": [
        "申し訳ありませんが、できません。",
        "エラーについて詳しく教えてください。",
        "エラー：リクエストが多すぎます",
    ],
}
LANGUAGES = tuple(_SUBJECTS)


def prose_replies(code: str, count: int, seed: int) -> Iterator[str]:
    """Yield replies that say something about `code` and hold no new version of it."""
    dice = random.Random(seed)
    for _ in range(count):
        words = _sentences(dice, dice.choice(LANGUAGES))
        yield dice.choice(_WRAPPINGS)(words, code)


def _sentences(dice: random.Random, language: str) -> str:
    end = "。" if language in ("zh", "ja") else "."
    gap = "" if language in ("zh", "ja") else " "
    parts = []
    for _ in range(dice.randint(1, 4)):
        if dice.random() < 0.3:
            parts.append(dice.choice(_MORE[language]))
        else:
            parts.append(f"{dice.choice(_SUBJECTS[language])}{gap}{dice.choice(_VERDICTS[language])}{end}")
    return dice.choice([gap, "\n", "\n\n"]).join(parts)


def _some_lines(code: str) -> str:
    return "\n".join(code.split("\n")[:2])


_WRAPPINGS = (
    lambda words, code: words,
    lambda words, code: f"```\n{words}\n```",
    lambda words, code: f"```python\n{words}\n```",
    lambda words, code: f"````text\n{words}\n````\n{words}",
    lambda words, code: f"{code}\n\n{words}",
    lambda words, code: f"{words}\n\n{code}",
    lambda words, code: f"- {words}",
    lambda words, code: f"## {words}\n\n{words}",
    lambda words, code: f"```\n{code}\n```\n{words}\n```\n{_some_lines(code)}\n```",
    lambda words, code: f"NO CHANGE: {words}",
    lambda words, code: f"{words}\n```diff\n- {_some_lines(code)}\n+ other\n```",
    lambda words, code: f"`{words}`",
    lambda words, code: f"```python\n{_some_lines(code)}\n",
    lambda words, code: f'{{"error": {{"message": "{words.splitlines()[0]}", "code": 429}}}}',
    lambda words, code: f"<html><body>{words}</body></html>",
)
