"""Language reward: the shared cases, and other inputs of the same kinds."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from r1pipe.chat import Tags
from r1pipe.data.generated import arithmetic, general
from r1pipe.errors import UserError
from r1pipe.rewards import language, registry
from r1pipe.rewards.verdict import Context
from r1pipe.settings import RewardPart
from tests.rewards import cases

ES = "primero calculamos el area del cuadrado y luego sumamos las dos partes"


def test_cases():
    for case in cases.load("language"):
        low, high = case["expect"]
        verdict = language.verify(case["input"]["text"], {"language": case["input"]["target"]})
        assert verdict.score is not None and low <= verdict.score <= high, (case["id"], verdict)


def check(text: str, target: str, low: float, high: float) -> None:
    value = language.share(text, target)
    assert value is not None and low <= value <= high, value


SHORT = {
    "en": "OK|Yes.|Hello|Done.|Sure|Right.|Hmm|Therefore|No.|Correct.|Maybe|Wait|Easy|QED|Total: 5|Next|Answer: 12|"
    "Case 1|Thanks!|carry 1|step 2: 3 + 4 = 7|Simplify.|Let's see|Okay|Triangle ABC|Area = 25|Base case|Divisible|"
    "minus 4|plus 5|Total minus 4 is 12|integer|Proof by induction.|Obviously|By symmetry|Trivial|etc. i.e. 5",
    "es": "Sí.|Hola|No.|Correcto|Total: 5|Suma|Paso 2|Respuesta: 12|Llevamos 1|Vale|Entonces|Triángulo ABC|Área",
    "fr": "Oui.|Bonjour|Non|D'accord|Étape 2|Réponse : 12|Donc|Triangle ABC|Je retiens 1",
    "de": "Ja.|Hallo|Nein|Gut|Schritt 2|Antwort: 12|Fall 1|Dreieck ABC|Summe",
    "it": "Sì.|Ciao|No|Passo 2|Risposta: 12|Area|Somma|Va bene",
    "pt": "Sim.|Olá|Não|Passo 2|Resposta: 12|Área|Soma|Vai 1",
    "vi": "Vâng|Đúng|Bước 2|Đáp án: 12|Nhớ 1|Tổng",
    "ru": "Да.|Привет|Нет|Шаг 2|Ответ: 12|Площадь|Делим на 2",
    "uk": "Так|Сума",
    "bg": "Да",
    "hi": "नमस्ते|उत्तर 12",
    "mr": "उत्तर 12",
    "ja": "手順2：3 + 4 = 7|証明終了|はい",
    "zh": "好的|第2步|证毕",
    "ko": "네|답: 12",
    "th": "ครับ",
}


@pytest.mark.parametrize("target", SHORT)
def test_short_pieces_are_the_target(target):
    for text in SHORT[target].split("|"):
        assert language.share(text, target) == 1.0, text


@pytest.mark.parametrize(
    ("text", "target", "low"),
    [
        ("Müller and Nguyễn each scored three goals, so together they scored six goals in the match.", "en", 0.85),
        ("María, José, Juan and Pedro share 20 cookies equally.", "en", 0.85),
        ("By the Cauchy-Schwarz inequality and Fermat's theorem, Gödel, Erdős and Poincaré are right.", "en", 0.85),
        ("François lives in Saint-Étienne and Jürgen in Düsseldorf; they meet in São Paulo.", "en", 0.85),
        ("L'Hôpital's rule gives the limit.", "en", 0.85),
        ("Ella has 5 apples. Theo has 3. Elle eats 2.", "en", 1),
        ("Julio, Luis, Pedro and Ana play dominoes; Julio beats Luis.", "en", 0.85),
        ("A priori, the lemma implies convergence; vice versa, the sequence diverges ad infinitum.", "en", 0.85),
        ("Differentiate implicitly. Integrate by parts. Substitute. Evaluate limits. Simplify.", "en", 1),
        ("John y Mary comen hamburguesas en New York con Smith.", "es", 0.85),
        ("Anna kauft im Supermarkt Cola, Pizza und Spaghetti für ihre Party.", "de", 0.85),
    ],
)
def test_names_and_loan_words(text, target, low):
    check(text, target, low, 1)


@pytest.mark.parametrize(
    ("text", "target", "low", "high"),
    [
        # one foreign word
        ("We know the first angle and entonces the third angle must be a right angle too.", "en", 0.9, 0.99),
        ("We know the first angle, donc the third angle must be a right angle as well.", "en", 0.9, 0.99),
        ("We add the two numbers aber the result is not yet what we want to have here.", "en", 0.9, 0.99),
        ("Sabemos el primer ángulo, therefore el tercer ángulo debe ser recto también.", "es", 0.85, 0.99),
        ("We know both angles, потому the third one must be a right angle as well.", "en", 0.9, 0.99),
        # half and half
        ("First we compute the area of the square. Luego sumamos las dos partes del total.", "en", 0.4, 0.65),
        ("First we compute the area of the square. Luego sumamos las dos partes del total.", "es", 0.35, 0.6),
        ("Der Flächeninhalt des Quadrats ist 25. Then we add the two parts together.", "de", 0.3, 0.6),
        ("First, 23 plus 15 makes 38. 然后减去12，得到26。", "en", 0.3, 0.6),
        # word by word
        (f"So {ES[:17]} the area and luego sumamos the two parts.", "en", 0.4, 0.8),
        # foreign with a few words of the target
        ("Primero the calculamos el area and del cuadrado, luego is sumamos las dos partes then", "en", 0, 0.35),
        # short steps
        ("3 plus 4 es igual a 7. 7 menos 2 es 5.", "en", 0, 0.2),
        ("Sumamos 3 + 4 = 7. Restamos 2. Queda 5.", "en", 0, 0.35),
        ("Zuerst rechnen wir 3 plus 4, das ergibt 7.", "en", 0, 0.1),
        # without accents, in capitals
        (ES, "en", 0, 0),
        (ES.upper(), "en", 0, 0),
        (ES.title(), "en", 0, 0.1),
        ("D'abord nous calculons l'aire du carre, ensuite nous additionnons les parties.", "en", 0, 0.1),
        ("Dau tien ta cong 3 va 4 duoc 7, sau do tru 2 con 5.", "en", 0, 0.3),
        # in no configured language
        ("Eerst berekenen we de oppervlakte van het vierkant. Daarna tellen we de delen op.", "en", 0, 0.3),
        ("Önce karenin alanını hesaplayalım. Sonra iki parçayı toplarız. Cevap on ikidir.", "en", 0, 0.2),
        ("women xian jisuan zhengfangxing de mianji ranhou ba liang ge bufen jia qilai", "en", 0, 0.2),
        ("snachala naydem ploshchad kvadrata a zatem slozhim dve chasti znachit otvet", "en", 0, 0.2),
        ("Қосындыны табу үшін екі санды қосамыз, содан кейін бөлеміз.", "ru", 0, 0.3),
        # another target than the usual ones
        ("Najpierw obliczamy pole kwadratu, potem dodajemy obie części.", "pl", 1, 1),
        ("First we compute the area of the square and then add them.", "pl", 0, 0.2),
        ("Først beregner vi arealet av kvadratet, og så legger vi sammen delene.", "nb", 0.9, 1),
        ("Πρώτα υπολογίζουμε το εμβαδόν του τετραγώνου.", "el", 1, 1),
        ("Primeiro calculamos a área e depois somamos as duas partes.", "pt-BR", 1, 1),
        # no words of the language
        ("三角形 ABC 的 sin 值", "zh", 1, 1),
        ("在△ABC中，AB = AC，∠BAC = 40°，求∠ABC。", "zh", 1, 1),
        ("速度是60km/h，时间是3h，路程是 180 km。", "zh", 1, 1),
        ("设 x_1 为未知数，则 x_1 = 3。", "zh", 1, 1),
        ("由 $\\sin \\alpha \\cos \\beta \\tan \\gamma \\log \\delta$ 得", "zh", 1, 1),
        ("Пусть x = 5, тогда 2πr равно Δx, значит µm.", "ru", 1, 1),
        ("因为 f(x) 连续, by the mean value theorem, 存在 c。", "zh", 0.3, 0.7),
    ],
)
def test_shares(text, target, low, high):
    check(text, target, low, high)


@pytest.mark.parametrize(
    ("text", "target", "low", "high"),
    [
        ("这首歌叫ロミオとシンデレラ，很有名。", "zh", 0.4, 0.9),
        ("私は「我们」という中国語を読む。", "ja", 0.7, 0.97),
        ("我们の先计算の正方形の面积の然后", "ja", 0, 0.45),
        ("我们先算三加四，得到七。", "ja", 0, 0.1),
        ("先算三加四得到七", "ja", 0, 0.1),
        ("これは問題です。答えは三です。", "zh", 0, 0.05),
        ("まず正方形の面積を求めます。二等辺三角形。", "zh", 0, 0.1),
        ("数学的帰納法を用いて証明する。国学院大学の学生。", "ja", 1, 1),
        ("具体的に計算すると、方程式 x = 5、答えは12です。", "ja", 1, 1),
        ("我們先計算正方形的面積，所以答案是十二。", "zh", 1, 1),
        ("我們先計算正方形的面積，所以答案是十二。", "zh-CN", 1, 1),
        ("我們先計算正方形的面積，所以答案是十二。", "ja", 0, 0.2),
        ("먼저 正方形의 넓이를 구합니다.", "ko", 0.5, 0.9),
    ],
)
def test_chinese_and_japanese(text, target, low, high):
    check(text, target, low, high)


HIDDEN = [
    ("between dollars", "We add the numbers $我们先计算正方形的面积$ and get 5."),
    ("between prices", "We pay $5 每个人的费用 and $7 for the two of us."),
    ("display formula", "We add them. \\[我们先计算正方形的面积\\] So five."),
    ("words as a formula", f"We add them. ${ES}$ So five."),
    ("\\text", f"We add them. $$\\text{{{ES}}}$$ So five."),
    ("many short \\text", "ok $" + " ".join(f"\\text{{{w}}}" for w in ES.split()) + "$"),
    ("fence", f"We add them. ```\n{ES}\n``` So five."),
    ("fence of a language", f"We add them. ```python\n{ES}\n{ES}\n``` So five."),
    ("fence with sums", "We add. ```\nPrimero sumamos 3 y 4 y da 7.\nLuego restamos 2 y nos queda 5.\n``` So five."),
    ("open fence", f"We add them. ```\n{ES}"),
    ("comments of code", f"We add them. ```python\n# {ES}\n# {ES}\nx = 1\n``` So five."),
    ("Han in code", "We add them. ```python\nx = 1  # 我们先计算正方形的面积\n``` So five."),
    ("inline code", f"We add them: `{ES}` So five."),
    ("HTML comment", f"We add them. <!-- {ES} --> So five."),
    ("attribute", f'We add them. <span title="{ES}"> So five.'),
    ("Han in an attribute", "We add them. <b class='我们先计算正方形的面积'> So five."),
    ("tags", "We add. " + " ".join(f"<{w}>" for w in ES.split()) + " So five."),
    ("names", "ok then " + ES.replace(" ", "_")[:37] + " " + ES.replace(" ", "_")[38:]),
    ("zero width", "We add 我\u200b们\u200b先\u200b算\u200b面\u200b积 and get five."),
    ("zero width in Latin", "We add them. " + "\u200b".join(ES) + " So five."),
    ("spaced Han", "We add 我 们 先 算 面 积 and get five."),
    ("look-alikes", "Wе аdd thе twо numbеrs аnd gеt fivе"),
    ("entities", "&#25105;&#20204;&#20808;&#35745;&#31639; then we add"),
    ("full width", ES.translate({i: i + 0xFEE0 for i in range(97, 123)})),
    ("mathematical letters", ES.translate({i: i - 97 + 0x1D41A for i in range(97, 123)})),
    ("struck through", "We add. " + "".join(c + "\u0336" for c in ES)),
    ("a script that is not listed", "We add ᎠᎴ ᏔᎵ ᎢᎦ ᎠᏎᏍᏗ and get five."),
    ("Georgian", "გამოვთვალოთ კვადრატის ფართობი then we add"),
    ("an address", "We add https://x.org/我们先计算正方形的面积 and get five."),
]


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in HIDDEN])
def test_hidden_text_counts(text):
    check(text, "en", 0, 0.85)


@pytest.mark.parametrize(
    "text",
    [
        "```\nFirst we compute the area of the square and then we add the two parts.\n```\n所以",
        "`First we compute the area of the square` 所以",
        "所以 $first we compute the area of the square$",
        "所以 F i r s t w e c o m p u t e",
        "所以 THE AREA OF THE SQUARE IS TWENTY FIVE",
    ],
)
def test_hidden_english_counts_for_chinese(text):
    check(text, "zh", 0, 0.7)


@pytest.mark.parametrize(
    "text",
    [
        "我们写：\n```python\ndef total(numbers):\n    return sum(numbers)  # add all the numbers up\n```\n这样。",
        "我们写：\n~~~sql\nSELECT name FROM users WHERE age > 30 ORDER BY name;\n~~~\n这样。",
        "我们写：\n```\ntotal = price * count + tax\nspeed = distance / time\n```\n这样。",
        "我们写 `for i in range(n)` 和 `if x not in seen`。",
        "速度 $v = \\frac{\\text{distance}}{\\text{time}}$，\\begin{align*} ab &= cd \\\\ x &= y \\end{align*}",
        "见 https://example.org/first/second/third 所说",
        '我们<b>先</b>算<br/>，<span class="x">再</span>加</think>',
        "变量 total_sum 等于 n_1 加 x2，函数是 log 和 gcd，单位是 5 kg。",
    ],
)
def test_code_and_formulas_do_not_count(text):
    assert language.share(text, "zh") == 1.0


def test_only_the_thinking_counts():
    text = Tags().wrap("先算一下", "The answer is twelve")
    assert language.verify(text, {"language": "zh"}).score == 1.0
    prefilled = "先算一下</think><answer>twelve words</answer>"
    assert language.verify(prefilled, {"language": "zh"}, prefilled=True).score == 1.0
    assert language.verify("<think>\n先算一下", {"language": "zh"}).score == 1.0
    tags = Tags(think_open="[T]", think_close="[/T]")
    assert language.verify("[T]先算[/T] twelve", {"language": "zh"}, tags=tags).score == 1.0


@pytest.mark.parametrize(
    "text", ["", "12 + 30 = 42", "😀 → ✓", "```python\nprint(42)\n```", "$x^2 = 4$", "\u200b", "x"]
)
@pytest.mark.parametrize("target", ["en", "zh", "ru"])
def test_nothing_to_count(text, target):
    assert language.share(text, target) is None
    verdict = language.verify(f"<think>{text}</think>", {"language": target})
    assert (verdict.score, verdict.status) == (0.0, "unverifiable")


def test_unknown_languages():
    assert language.verify("words here", {"language": "tlh"}).status == "error"
    assert language.verify("words here", {"language": None}).score is None
    assert language.share("words", "tlh") is None
    with pytest.raises(UserError, match="tlh"):
        registry.validate({"language": RewardPart(options={"languages": ["en", "tlh"]})})
    with pytest.raises(ValidationError):
        language.Options(target="klingon")


def test_only_configured_languages_are_told_apart():
    assert language.share(ES, "en", ["en", "zh"]) == 0.0  # near another language that is known, if not which
    assert language.share("Schritt zwei: wir addieren die Zahlen", "en", ["en", "de"]) == 0.0
    galego = "Primeiro calculamos a área do cadrado e despois sumamos as dúas partes."
    assert language.share(galego, "pt", ["pt", "en"]) > language.share(galego, "pt", ["pt", "gl"])
    facts = language.Language(language.Options(languages=["en", "es"]), Context()).facts()
    assert facts["languages"] == ["en", "es"] and facts["detector"].startswith("py3langid ")


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_generated_rows(noise):
    """The demo's rewards: clean rows score 1.0, noisy ones the share of their sentences."""
    rows = arithmetic.traces(300, seed=3, mixed=noise, malformed=0.0)
    scores = [language.verify(r["messages"][-1]["content"], r).score for r in rows]
    if not noise:
        rows = general.traces(200, seed=3)
        scores += [language.verify(r["messages"][-1]["content"], r).score for r in rows]
        assert set(scores) == {1.0}
    else:
        assert 0.4 < sum(scores) / len(scores) < 0.6


def test_order_threads_and_repetition_change_nothing():
    texts = [text for _, text in HIDDEN] + [t for v in SHORT.values() for t in v.split("|")]
    rows = [{"language": target} for target in ("en", "es", "ru") for _ in texts]
    reward = language.Language(language.Options(), Context())
    first = reward(texts * 3, rows)
    assert first == reward((texts * 3)[::-1], rows[::-1])[::-1]
    with ThreadPoolExecutor(4) as pool:
        assert first == list(pool.map(lambda pair: reward([pair[0]], [pair[1]])[0], zip(texts * 3, rows, strict=True)))


def test_the_detector_is_loaded_only_where_it_is_needed():
    code = (
        "import sys\nfrom r1pipe.rewards import language\n"
        "assert language.share('First, 23 plus 15 makes 38. Then 38 minus 3 is 35.', 'en') == 1\n"
        "assert language.share('我们先算', 'zh') == 1\n"
        "assert language.share('Compute the area', 'zh') == 0\n"
        "assert 'py3langid' not in sys.modules\n"
        "assert language.share('Compute the area', 'en') == 1\n"
        "assert 'py3langid' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@given(st.text())
def test_always_a_share(text):
    for target in ("en", "zh", "ja", "th", "ru"):
        value = language.share(text, target)
        assert value is None or 0 <= value <= 1


@given(
    st.lists(
        st.sampled_from(
            ["$", "`", "```", "\\[", "\\]", "\\text{", "}", "<b ", ">", "_", "\n", "算", "words", "я", "1"]
        )
    )
)
def test_marks_raise_nothing(pieces):
    for target in ("en", "zh"):
        value = language.share(" ".join(pieces), target)
        assert value is None or 0 <= value <= 1
