"""Placeholders are known in the languages in which people write, by their words; a comment that says more is none."""

from __future__ import annotations

import pytest

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.placeholder_words import says_left_out
from codeagent_lsp.index.placeholders import refuse_left_out

STANDS = {
    "zh": ("以下同前", "此處省略", "其餘程式碼保持不變", "原有程式碼", "其他函式不變", "下面的代码不变"),
    "ja": (
        "以下省略",
        "既存のコード",
        "残りのコードは変更なし",
        "残りは同じ",
        "その他のメソッドはそのまま",
    ),
    "ko": ("나머지 코드는 동일", "기존 코드", "나머지 메서드는 그대로 유지", "이하 생략", "변경 없음"),
    "de": ("Rest bleibt unverändert", "restlicher Code unverändert", "bestehender Code", "Übrige Methoden wie bisher"),
    "fr": ("le reste est inchangé", "code existant", "le reste du code", "les autres méthodes restent inchangées"),
    "es": ("resto del código sin cambios", "código existente", "los demás métodos se mantienen igual que antes"),
    "pt": (
        "resto do código",
        "código existente",
        "os outros métodos permanecem inalterados",
        "restante sem alterações",
    ),
    "it": ("resto del codice invariato", "codice esistente", "gli altri metodi rimangono invariati", "come prima"),
    "ru": ("остальной код без изменений", "существующий код", "остальные методы не изменились", "всё как раньше"),
    "pl": ("reszta kodu bez zmian", "istniejący kod", "pozostałe metody bez zmian", "kod pominięty"),
    "tr": ("kodun geri kalanı değişmedi", "mevcut kod", "diğer metotlar değişmedi", "kalan kod aynı"),
    "vi": ("phần còn lại của mã giữ nguyên", "mã hiện có", "các hàm khác không thay đổi"),
    "en": ("the rest remains untouched", "body as in the original"),
}
MEANT = {
    "zh": ("其他代码依赖这个顺序", "保持連線直到逾時", "类的构造函数", "原有配置优先於新配置", "省略号的处理"),
    "ja": ("残りの時間を計算する", "既存のファイルを上書きする", "値を返す関数", "同じキーは無視する", "元に戻す"),
    "ko": ("나머지 시간을 계산한다", "기존 파일을 덮어쓴다", "다른 스레드가 읽는 중", "같은 키는 무시한다"),
    "de": (
        "Rest der Division",
        "Der Code muss gültig sein",
        "Andere Werte sind ein Fehler",
        "bestehende Datei löschen",
    ),
    "fr": (
        "le reste de la division",
        "code postal",
        "les autres valeurs sont ignorées",
        "fichier existant à supprimer",
    ),
    "es": (
        "resto de la división",
        "código postal",
        "los otros usuarios esperan",
        "sin cambios en la caché, nada que hacer",
    ),
    "pt": ("resto da divisão", "código postal do cliente", "os outros usuários esperam", "a função principal"),
    "it": ("resto della divisione", "codice fiscale", "gli altri utenti aspettano", "la funzione principale"),
    "ru": ("остаток от деления", "код ошибки", "другие пользователи ждут", "существующий файл перезаписывается"),
    "pl": ("reszta z dzielenia", "kod pocztowy", "inni użytkownicy czekają", "istniejący plik zostanie nadpisany"),
    "tr": ("bölümden kalan sayı", "hata kodu", "diğer kullanıcılar bekler", "mevcut dosyayı sil"),
    "vi": ("phần dư của phép chia", "mã lỗi", "người dùng khác đang chờ", "ghi đè tệp hiện có"),
}
LINES = [f"name{number} = value {number}\n" for number in range(12)]


def change(line: str) -> None:
    refuse_left_out("a.py", "".join(LINES), "".join((*LINES[:3], f"    {line}\n", *LINES[9:])))


@pytest.mark.parametrize(("language", "words"), [(key, each) for key, row in STANDS.items() for each in row])
def test_a_placeholder_is_refused_in_any_language(language: str, words: str) -> None:
    for form in ("# {}", "# ... {} ...", "# ({})", "# [{}]", "# {}.", "// {}", "/* {} */", "-- {}"):
        with pytest.raises(EditRefused):
            change(form.format(words))
            pytest.fail(f"{language}: {words}")


@pytest.mark.parametrize(("language", "words"), [(key, each) for key, row in MEANT.items() for each in row])
def test_a_comment_that_says_more_is_written(language: str, words: str) -> None:
    for form in ("# {}", "# {}.", "// {}", "/* {} */"):
        change(form.format(words))
    assert not says_left_out(words.lower()), language
