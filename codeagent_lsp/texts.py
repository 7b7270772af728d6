"""The one catalogue of sentences a user can see, in English and Chinese.

A key names where the sentence belongs; `{placeholders}` are the same in both languages. Not here: texts for
the model (prompts, tool results), which are English and stand where they are made.
"""

from __future__ import annotations

LANGUAGES = ("en", "zh-cn")

_CATALOGUE: dict[str, tuple[str, str]] = {
    # --- settings
    "setting.bad": (
        "Setting {key}: {value} is not allowed. Allowed: {allowed}. Using the default {default}.",
        "设置 {key}：不允许的值 {value}。允许：{allowed}。已使用默认值 {default}。",
    ),
    "setting.unknown": (
        "Setting {key} does not exist; it is ignored. `codeagent-lsp schema settings` lists all.",
        "设置 {key} 不存在，已忽略。运行 `codeagent-lsp schema settings` 查看全部设置。",
    ),
    # --- models
    "model.unreachable": (
        "Cannot reach the model at {url}: {reason}. Is the server running? Check the setting model.baseUrl.",
        "无法连接模型 {url}：{reason}。服务器在运行吗？请检查设置 model.baseUrl。",
    ),
}


def text(key: str, language: str = "en", /, **values: object) -> str:
    """The sentence `key` in `language`, its placeholders filled. An unknown key is a bug: KeyError."""
    pair = _CATALOGUE[key]
    template = pair[1] if language == "zh-cn" else pair[0]
    return template.format(**values) if values else template


def keys() -> tuple[str, ...]:
    """All keys, in catalogue order; the tests walk over them."""
    return tuple(_CATALOGUE)


def pair(key: str) -> tuple[str, str]:
    """The English and the Chinese template of `key`."""
    return _CATALOGUE[key]


def choose_language(setting: str, locale: str | None) -> str:
    """The language for the user: the setting, or for `auto` what the client's locale asks for."""
    if setting in LANGUAGES:
        return setting
    return "zh-cn" if (locale or "").lower().replace("_", "-").startswith("zh") else "en"
