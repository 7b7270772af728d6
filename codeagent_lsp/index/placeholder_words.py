"""The vocabulary of placeholders, such as `остальной код без изменений`, in English and other languages: a comment is
one only if each of its words is in the vocabulary of one language, so that a comment that says more is none.

Pure functions. Not here: the sentences of English and Chinese that are surely one, and where a placeholder counts
(`placeholders.py`).
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple


class _Vocabulary(NamedTuple):
    """Patterns of the words of one language: `kept` for the rest or what exists, `other`, `part` for code, `state` for
    unchanged or left out, `same`, and `joined` for what only joins them.
    """

    kept: str
    other: str
    part: str
    state: str
    same: str
    joined: str
    spaced: bool = True


_ENGLISH = _Vocabulary(
    "rest|remainder|remaining|existing|previous|prior|earlier|original|everything else|everything|elsewhere",
    "others?|more|further",
    "codes?|functions?|methods?|implementations?|class(?:es)?|files?|logic|body|bodies|imports?|modules?|scripts?"
    "|components?|tests?|handlers?|helpers?|definitions?|statements?|lines|contents?|sections?|parts?|version|block",
    "unchanged|unaltered|unmodified|untouched|intact|omitted|elided|truncated|shortened|abbreviated|skipped|snip(?:ped)?"
    "|not (?:shown|changed|modified|repeated)|no (?:further |other |more )?changes?(?: needed)?|as[ -]is"
    "|as (?:it|they) (?:is|was|are|were)|(?:the )?same as (?:before|above|original|it was)"
    "|(?:as|like|see|just as) (?:before|above|previously|earlier)"
    "|(?:as|like|see) (?:in )?(?:the )?original(?: version| code| file)?|and so (?:on|forth)|etc"
    "|only (?:the )?(?:changed|modified|changes?) (?:parts?|lines?|code|sections?|functions?)?(?: is| are)? ?shown"
    "|continues?|identical|remains?|stays?|keeps?|follows?",
    "same",
    "the|a|an|of|your|this|its|it|here|below|above|from|on|with|for|brevity|clarity|leave|insert|put|add|all|is|are|was"
    "|were|goes|go|todo|and|in|to|at|left|kept|out|that|these|those|so far|onwards?|down|point|after|before|then|now",
)
"""So much is said in ordinary comments, too."""

_VOCABULARIES = (
    _Vocabulary(
        "後續|后续|其後|其后|其餘|其余|剩餘|剩余|剩下|餘下|余下|原有|原來|原来|原始|原先|之前|先前|現有|现有|已有|既有",
        "其他|其它",
        "程式碼|代碼|代码|程式|函數|函数|函式|方法|邏輯|逻辑|部分|實作|實現|实现|匯入|导入|類別|类|內容|内容|行|檔案|文件",
        "保持不變|保持不变|維持不變|维持不变|維持原樣|保持原樣|保持原样|不變|不变|未變|未变|未修改|不動|不动|省略|略去|略|同上|同前"
        "|僅顯示修改部分|仅显示修改部分|只顯示修改部分|只显示修改部分|仅显示修改的部分|只显示修改的部分|仅展示修改部分|只展示修改部分"
        "|仅列出修改部分|只列出修改部分|照舊|照旧|無變化|无变化|沒有變化|没有变化|無需修改|無須修改|与之前相同|與之前相同|和之前一樣|和之前一样|與原來相同|与原来相同",
        "相同|一樣|一样",
        "這裡|这里|此處|此处|以下|以上|下面|上面|後面|后面|前面|保留|保持|都|均|也|是|為|为|的|所有|全部|與|与|和|在此",
        spaced=False,
    ),
    _Vocabulary(
        "残り|既存|元|もと|以前|以降",
        "その他|他|ほか",
        "コード|関数|メソッド|クラス|処理|実装|部分|内容|行|ファイル|インポート|ロジック|本体",
        "変更なし|変更無し|変更ありません|変更しない|変わらず|変わりません|変わらない|そのまま|省略|略|同上|以前と同じ|前と同じ|元のまま",
        "同じ|同様|同一",
        "以下|以上|ここ|ここに|上記|下記|すべて|全て|の|は|も|が|に|を|と|まま|です|ます|します|する|されています|して|、",
        spaced=False,
    ),
    _Vocabulary(
        "나머지|기존|이전|원래|남은",
        "다른|그 외|기타",
        "코드|함수|메서드|메소드|클래스|구현|부분|내용|로직|파일|줄|본문",
        "변경 ?없음|변경되지 ?않음|변경 ?사항 ?없음|그대로|생략|위와 ?동일|이전과 ?동일|기존과 ?동일|변함 ?없음",
        "동일|같음|같습니다",
        "이하|여기에?|위|아래|모든|들|은|는|이|가|을|를|의|과|와|도|로|합니다|입니다|함|유지|됨|됩니다|하게|한",
        spaced=False,
    ),
    _Vocabulary(
        r"rest|restliche[rnsm]?|übrige[rnsm]?|verbleibende[rnsm]?|bestehende[rnsm]?|vorhandene[rnsm]?|bisherige[rnsm]?"
        r"|ursprüngliche[rnsm]?",
        "andere[rnsm]?|weitere[rnsm]?",
        r"code|codes|quellcode|funktion(?:en)?|methoden?|klassen?|importe|implementierung(?:en)?|zeilen?|datei|inhalte?"
        r"|teile?|logik|rumpf",
        "unverändert|ungeändert|ausgelassen|weggelassen|gekürzt|wie bisher|wie vorher|wie zuvor|wie oben|wie gehabt"
        "|siehe oben|nicht geändert|keine änderung(?:en)?",
        "gleich|identisch",
        "der|die|das|des|dem|den|hier|bleib(?:t|en)|ist|sind|wird|werden|wurden?|alle[rsn]?|alles|oben|unten|von|vom|ab"
        "|im|zur|kürze|halber|übersicht|aus|gründen",
    ),
    _Vocabulary(
        "reste|restante?s?|existante?s?|actuel(?:le)?s?|précédente?s?|originale?s?|originaux|initiale?s?",
        "autres?",
        "code|fonctions?|méthodes?|classes?|imports?|implémentations?|lignes?|fichier|contenu|corps|parties?|logique",
        "inchangée?s?|omise?s?|sans changements?|sans modifications?|non modifiée?s?|comme avant|comme ci-dessus"
        "|identique à avant|tel quel|telle quelle|tels quels|telles quelles|pas de changements?|aucun changement",
        "identiques?|pareils?|même|mêmes",
        "le|la|les|l'|l’|du|de|des|d'|est|sont|reste|restent|demeure|demeurent|ici|tout|toute|tous|toutes|ci-dessus"
        "|ci-dessous|par souci|pour|brièveté|concision",
    ),
    _Vocabulary(
        "resto|restantes?|existentes?|actual(?:es)?|anterior(?:es)?|original(?:es)?",
        "otr[oa]s?|demás",
        "código|funci(?:ón|ones)|métodos?|clases?|importaci(?:ón|ones)|imports|implementaci(?:ón|ones)|líneas?|archivo"
        "|fichero|contenido|cuerpo|partes?|lógica",
        "sin cambios?|sin modificar|sin modificaciones|no cambian?|omitid[oa]s?|se omiten?|como antes|igual que antes"
        "|tal cual|no modificad[oa]s?|inalterad[oa]s?",
        "igual(?:es)?|mism[oa]s?|idéntic[oa]s?",
        "el|la|los|las|lo|de|del|aquí|es|son|está|están|queda|quedan|permanecen?|se|mantienen?|sigue|siguen|todos?"
        "|todas?|por|brevedad|arriba|abajo",
    ),
    _Vocabulary(
        "resto|restantes?|existentes?|atua(?:l|is)|anterior(?:es)?|origina(?:l|is)",
        "outr[oa]s?|demais",
        "código|fun(?:ção|ções)|métodos?|classes?|importa(?:ção|ções)|imports|implementa(?:ção|ções)|linhas?|arquivo"
        "|ficheiro|conteúdo|corpo|partes?|lógica",
        "sem alteraç(?:ão|ões)|sem mudanças?|não mudam?|inalterad[oa]s?|omitid[oa]s?|como antes|igual a antes"
        "|como estava|não alterad[oa]s?|não modificad[oa]s?",
        "igua(?:l|is)|mesm[oa]s?|idêntic[oa]s?",
        "o|a|os|as|de|do|da|dos|das|aqui|é|são|está|estão|fica|ficam|permanecem?|continuam?|mantém|mantêm|se|todos?"
        "|todas?|por|brevidade|acima|abaixo",
    ),
    _Vocabulary(
        "resto|restanti|restante|rimanent[ei]|esistent[ei]|attual[ei]|precedent[ei]|original[ei]|originari[oa]",
        "altr[oaie]|altre",
        "codice|funzion[ei]|metod[oi]|class[ei]|import|implementazion[ei]|righe|riga|file|contenuto|corpo|part[ei]"
        "|logica",
        "invariat[oaie]|immutat[oaie]|senza modifiche|senza cambiamenti|non modificat[oaie]|non cambiano?|omess[oaie]"
        "|come prima|come sopra|nessuna modifica",
        "uguali?|identic[oaie]|identici|identiche|stess[oaie]",
        "il|lo|la|i|gli|le|l'|l’|del|dello|della|dei|degli|delle|di|qui|è|sono|resta|restano|rimane|rimangono|tutt[oaie]"
        "|per|brevità|sopra|sotto",
    ),
    _Vocabulary(
        r"остал\w+|остаток|остающ\w+|существующ\w+|имеющ\w+|текущ\w+|предыдущ\w+|прежн\w+|исходн\w+|оригинальн\w+",
        r"друг(?:ой|ая|ое|ие|их)|проч(?:ее|ие|их|ий)",
        r"код\w{0,2}|функци[яийю]|метод(?:ы|а|ов)?|класс(?:ы|а|ов)?|импорт(?:ы|а|ов)?|реализаци[яийю]"
        r"|строк[аи]?|файл\w{0,2}|содержимое|част[ьи]|тело|логик[аи]",
        r"без изменени[йя]|не изменил(?:ся|ась|ось|ись)|не изменя(?:ется|ются)|не меня(?:ется|ются)|неизменн\w+"
        r"|опущен[аоы]?|пропущен[аоы]?|как (?:и )?раньше|как (?:и )?прежде|как (?:и )?было|как выше",
        r"так(?:ой|ая|ое|ие) же|то же(?: самое)?|те же",
        "здесь|тут|оста[её]тся|остаются|вс[её]|все|весь|вся|выше|ниже|для|краткости|из",
    ),
    _Vocabulary(
        r"reszt[aęy]|pozosta[łl]\w+|istniej[ąa]c\w+|obecn\w+|poprzedni\w*|dotychczasow\w+|oryginaln\w+",
        r"inn[aey]|inne|inny",
        r"kod|kodu|funkcj[aei]|funkcje|metod[ay]?|klas[ay]?|importy|importów|implementacj[aei]|lini[aei]|linijek|pliku?"
        r"|zawartość|treść|części?|logik[ai]|ciało",
        "bez zmian|niezmienion[yaei]|nie zmienia się|nie zmieniają się|pominięt[oyae]|jak (?:po)?przednio|jak wcześniej"
        "|jak wyżej|tak jak było",
        "taki sam|taka sama|takie same?|tak samo|identyczn[yaei]",
        "tutaj|tu|jest|są|pozostaje|pozostają|cał[yae]|wszystkie|wszystko|powyżej|poniżej|dla|zwięzłości",
    ),
    _Vocabulary(
        "geri kalan[ıi]?|geri kalanlar|kalan|kalan[ıi]|mevcut|var olan|önceki|orijinal|eski",
        "diğer|başka",
        "kod(?:un|u|lar|ları)?|fonksiyon(?:un|lar|ları|ların)?|metot(?:lar|ları)?|metod(?:un|lar|ları)?|yöntemler"
        "|sınıf(?:ın|lar)?|uygulama|gövde|satırlar|satırları|dosya(?:nın)?|içerik|içeriği|kısım|kısmı?|mantık"
        "|içe aktarmalar",
        "değişmedi|değişmeden|değişmez|değişmiyor|değiştirilmedi|değişiklik yok|atlandı|kısaltıldı|öncekiyle aynı"
        "|önceki gibi|eskisi gibi|olduğu gibi|yukarıdaki gibi|aynı kalıyor|aynı kalır|aynı kalacak",
        "aynı|aynen",
        "burada|buraya|bu|tüm|bütün|ve|için|kalıyor|kalır|kısalık|yukarıda|aşağıda",
    ),
    _Vocabulary(
        "phần còn lại|còn lại|hiện có|hiện tại|sẵn có|trước đó|ban đầu|gốc|cũ",
        "khác",
        "mã nguồn|mã|code|hàm|phương thức|lớp|phần|dòng|tệp|file|nội dung|thân|logic|triển khai|cài đặt|import",
        "giữ nguyên|không thay đổi|không đổi|lược bỏ|bỏ qua|đã lược|như trước|như cũ|như trên|tương tự như trước",
        "giống nhau|giống|như nhau|tương tự",
        "của|các|những|tất cả|ở đây|tại đây|là|được|vẫn|thì|đã|ở trên|ở dưới|bên trên|bên dưới|để|cho|ngắn gọn",
    ),
)
_ROLES = ("state", "same", "kept", "other", "part", "joined")
_BETWEEN = re.compile(r"[\s,;:.`\u3001\u3002\uff0c\uff1a()\uff08\uff09\u2014\u2013-]*")
_MOST_WORDS = 14
_UNIT = re.compile(
    "行|檔案|文件|ファイル|파일|줄|zeile|datei|ligne|fichier|linea|archivo|fichero|linha|arquivo|ficheiro|rig[ah]|file"
    "|строк|фаил|lini|plik|satir|dosya|dong|tep"
)
"""Words for lines and files, without accents: with `current` or `existing` a comment is about one."""
_NOW = re.compile(
    "之前|先前|以前|이전|actual|actuel|anterior|precedent|bisherig|atual|attual|предыдущ|прежн|текущ|obecn|poprzedni"
    "|onceki|truoc do|hien tai"
)


def says_left_out(words: str) -> bool:
    """Return whether words say that code is left out: that the rest or the code is unchanged, or name existing code."""
    return any(
        "state" in roles or ("kept" in roles and not roles.isdisjoint(("part", "same")))
        for roles in _roles_by_language(words)
    )


def may_say_left_out(words: str) -> bool:
    """Return whether words may say that code is left out, as `other methods` does, which is a heading as well."""
    return any({"kept", "joined"} <= roles or {"other", "part"} <= roles for roles in _roles_by_language(words))


def may_say_left_out_in_english(words: str) -> bool:
    """Return whether English words, of which an ordinary comment may consist as well, may say that code is left out."""
    roles = _roles(_ENGLISH_PATTERN, words.lower())
    return "state" in roles or ("kept" in roles and not roles.isdisjoint(("part", "same", "unit")))


def _roles_by_language(words: str) -> list[set[str]]:
    """Return the roles that words have, for each language that has all of them."""
    plain = _without_marks(words.lower())
    return [roles for pattern in _PATTERNS if (roles := _roles(pattern, plain))]


def _roles(pattern: re.Pattern[str], words: str) -> set[str]:
    """Return the roles of words in a language; none if one of the words is not in its vocabulary."""
    roles: set[str] = set()
    place = count = 0
    while place < len(words):
        found = pattern.match(words, place)
        count += 1
        if found is None or count > _MOST_WORDS:
            return set()
        role = found.lastgroup or ""
        roles.add("unit" if role == "part" and _UNIT.match(found[0]) else "now" if _NOW.match(found[0]) else role)
        place = _BETWEEN.match(words, found.end()).end()  # type: ignore[union-attr]  # it matches nothing, too
    return roles


def _without_marks(text: str) -> str:
    """Return a text without its accents, which are often not typed."""
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))


def _pattern(language: _Vocabulary) -> re.Pattern[str]:
    # Of each role the longest word first: what is matched is never tried in another way.
    words = {role: sorted(str(getattr(language, role)).split("|"), key=len, reverse=True) for role in _ROLES}
    if language.spaced:  # its patterns have alternatives within
        words = {role: [str(getattr(language, role))] for role in _ROLES}
    ways = "|".join(f"(?P<{role}>{'|'.join(each)})" for role, each in words.items())
    # A whole word, but for an article with its apostrophe.
    end = r"(?:(?<=['\u2019])|(?![^\W_]))" if language.spaced else ""
    return re.compile(_without_marks(f"(?:{ways}){end}"))


_PATTERNS = tuple(map(_pattern, _VOCABULARIES))
_ENGLISH_PATTERN = _pattern(_ENGLISH)
