"""Verifiable instructions: each of the 25, rows, counting."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r1pipe.rewards import instructions
from r1pipe.rewards.instructions import text
from r1pipe.rewards.instructions.checks import CHECKS
from tests.rewards.cases import wrap

ENGLISH = "The weather was very nice today, so we went to the park with all of our friends."


def kept(answer: str, name: str, **arguments: object) -> bool:
    row = {"instruction_id_list": [name], "kwargs": [arguments]}
    verdict = instructions.verify(wrap(answer), row)
    assert verdict.score is not None, verdict
    return bool(verdict.score)


# instruction, arguments, answers that keep it, answers that do not
CASES: list[tuple[str, dict, list[str], list[str]]] = [
    (
        "keywords:existence",
        {"keywords": ["cat", "Ice Cream"]},
        ["A cat likes ice\ncream.", "ICE CREAM for the CAT!", "The cat's ice cream"],
        ["A category of ice cream", "A cat", "cat icecream", "concat ice cream"],
    ),
    ("keywords:existence", {"keywords": ["c++", "."]}, ["I like C++."], ["I like c.", "cccc."]),
    ("keywords:existence", {"keywords": ["天气"]}, ["今天天气很好"], ["今天天空很好"]),
    (
        "keywords:frequency",
        {"keyword": "dog", "frequency": 2, "relation": "at least"},
        ["dog dog", "Dog, hot-dog"],
        ["dog dogma", "dog"],
    ),
    ("keywords:frequency", {"keyword": "dog", "frequency": 2, "relation": "less than"}, ["one dog"], ["dog dog"]),
    ("keywords:forbidden_words", {"forbidden_words": ["cat", "bad"]}, ["The category"], ["The CAT.", "not bad"]),
    (
        "keywords:letter_frequency",
        {"letter": "E", "let_frequency": 3, "let_relation": "at least"},
        ["eEe", "three teas"],
        ["ee"],
    ),
    ("keywords:letter_frequency", {"letter": "!", "let_frequency": 2, "let_relation": "less than"}, ["Hi!"], ["Hi!!"]),
    ("language:response_language", {"language": "ru"}, ["Сегодня очень хорошая погода."], [ENGLISH, "12 34 ok"]),
    ("language:response_language", {"language": "hi"}, ["आज मौसम बहुत अच्छा है।"], [ENGLISH]),
    ("language:response_language", {"language": "zh"}, ["今天天气很好，我们去公园。"], ["今天 we went to the park"]),
    ("language:response_language", {"language": "en"}, [ENGLISH, f"```\n{ENGLISH}\n```"], ["Сегодня хорошая погода"]),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 2, "relation": "exactly"},
        [
            "One is here. Two is here!",
            "Dr. Smith and J. K. Rowling met at 3.15 p.m. on Jan. 5. They talked.",
            "Well... maybe it is so. Yes.",
            '"Really?" she asked. He nodded.',
            "这是一句。这是另一句。",
            "नमस्ते दोस्त। आप कैसे हैं?",
            "# A heading\n\nOne is here. Two is here.",
            "<<A Title>>\n\nOne is here.\n\n***\n\nTwo is here.",
            "* one point\n* another point",
            "1. First of all.\n2. Second of all.",
            "all small. in two parts.",
            "No, e.g. not this, i.e. that. Yes.",
            "The answer is no. It is no. 5 here",
        ],
        ["One only.", "One. Two. Three.", "!!! ... ???", "One; two"],
    ),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        ["One.\n\n***\n\nTwo.", "One.\n***\nTwo.", "***\nOne.\n***\nTwo.\n***", "One.\n* * *\nTwo is ***bold***."],
        ["One.\n\nTwo.", "One.", "One.\n***\nTwo.\n***\nThree.", "One.\n***\n***\nTwo.", "One ***bold*** two"],
    ),
    (
        "length_constraints:number_words",
        {"num_words": 5, "relation": "at least"},
        ["one two three four five", "don't use well-known, 3.14 words", "今天天气好", "आज मौसम बहुत अच्छा है"],
        ["one two three four", "one - two - three ! four", "今天天气", "well-known don't 3.14 1,000"],
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "second"},
        ["First one.\n\nSecond one.", "\n\nFirst.\n \n\n\n**Second** one.", 'First.\n\n"SECOND," he said.'],
        ["First.\n\nThe second.", "First.\nSecond.", "First.\n\nSecond.\n\nThird.", "First.\n\nSecondary."],
    ),
    (
        "detectable_content:number_placeholders",
        {"num_placeholders": 2},
        ["Dear [name], at [your address].", "[a1] [b2] [c3]"],
        ["Dear [name].", "[1] [2] [3]", "[x] [ ] [x]", "[a link](http://x) and [name]", "[open [name"],
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        ["Text here.\n\nP.S. More.", "Text.\n**P.S.** More.", "Text.\np.s. more", "Text.\nP.S: more"],
        ["P.S. More.", "Text.\n\nP.S.", "Text with P.S. inside.", "Text.\n\nP.P.S. More.", "Text.\nPS"],
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.P.S"},
        ["Text.\n\nP.P.S More.", "Text.\nP.S. a\nP.P.S. b"],
        ["Text.\n\nP.S. More."],
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "Before I forget:"},
        ["Text.\nBefore I forget: milk."],
        ["Text.\nBefore I forget"],
    ),
    (
        "detectable_format:number_bullet_lists",
        {"num_bullets": 2},
        ["* one\n* two", "Intro:\n- one\n  - two", "* **one**\n* two\n\n* * *\n\n**end**"],
        ["* one", "* one\n* two\n* three", "*one*\n*two*", "**one**\n**two**", "---\n***\n", "1. one\n2. two"],
    ),
    (
        "detectable_format:constrained_response",
        {},
        ["My answer is yes.", "my answer is maybe", "**My answer is no.**", "MY ANSWER IS NO."],
        ["Yes.", "My answer is yes. My answer is no.", "My answer is not sure.", "My answer is no idea"],
    ),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        ["*one* and *two*", "**one** and ***two*** here", "*one thing* is *two*"],
        ["*one*", "* one\n* two", "**one\ntwo**", "**** and ****", r"\*one\* \*two\*", "* a * b *"],
    ),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Section", "num_sections": 2},
        [
            "Section 1\nText.\nSection 2\nText.",
            "**SECTION 1:** text\n\n## Section 2\ntext",
            "Section I\ntext\nSection II\ntext",
            "Section 1\nSection 2\n\nSection 1\ntext\nSection 2\ntext",
        ],
        ["Section 1\nText.", "Section 1 Section 2", "Section 1\n\nSection 2\n", "In section 1 and section 2 we say"],
    ),
    (
        "detectable_format:json_format",
        {},
        ['{"a": 1}', '```json\n{"a": [1, "b"]}\n```', "```\n[1, 2]\n```"],
        ["5", '"text"', '{"a": 1} done', "{'a': 1}", '{"a": NaN}', '```json\n{"a": 1}\n```\ndone', '{"a": 1, "a": 2}'],
    ),
    (
        "detectable_format:title",
        {},
        ["<<A poem>>\ntext", "text <<of>>"],
        ["<A poem>", "<<>> a", "<<  >> a", "<<a\nb>>"],
    ),
    (
        "combination:two_responses",
        {},
        ["One.\n******\nTwo.", "One.\n\n******\n\nTwo.\n******\n"],
        ["One.\n******\nOne!", "One.\n***\nTwo.", "A\n******\nB\n******\nC", "One.\n******\n", "A\n*******\nB"],
    ),
    (
        "combination:repeat_prompt",
        {"prompt_to_repeat": "Write a poem,\nplease."},
        ["Write a poem, please. Roses are red.", '"Write a poem, please."\nRoses', "**write a poem, please.** Roses"],
        ["Sure! Write a poem, please. Roses", "Write a poem, please.", "Write a poem. Roses", "Roses"],
    ),
    (
        "startend:end_checker",
        {"end_phrase": "That is all you need!"},
        ["So. That is all you need!", '"So. That is all you need!"', "so. **that is all\nyou need!**  \n"],
        ["That is all you need! Bye", "That is all you need.", "So.", "That is all you need!!"],
    ),
    ("startend:end_checker", {"end_phrase": "end"}, ["the end"], ["the weekend", "the end of it"]),
    (
        "startend:quotation",
        {},
        ['"All of it."', "“All of it.”", '"He said "hi" to me."', '  "a “b” c"\n', "“He said “hi” to me.”"],
        ['"yes" and "no"', "“yes” and “no”", "plain", '"open', '""', "'single'"],
    ),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        ["NASA and ESA", "the COVID-19 of NASA's"],
        ["I saw A cat", "NASA", "NASa ESa", "1234 5678"],
    ),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 1, "capital_relation": "less than"},
        ["I am"],
        ["OK"],
    ),
    (
        "change_case:english_capital",
        {},
        [ENGLISH.upper()],
        [ENGLISH, ENGLISH.upper() + " a", "12 34.", "СЕГОДНЯ ХОРОШО"],
    ),
    ("change_case:english_lowercase", {}, [ENGLISH.lower()], [ENGLISH, "12 34.", "сегодня хорошая погода"]),
    ("punctuation:no_comma", {}, ["No comma here."], ["One, two", "一，二", "一、二", "", "..."]),
]


@pytest.mark.parametrize(("name", "arguments", "right", "wrong"), CASES)
def test_each_instruction(name, arguments, right, wrong):
    for answer in right:
        assert kept(answer, name, **arguments), answer
    for answer in wrong:
        assert not kept(answer, name, **arguments), answer


def test_all_of_ifeval():
    assert len(CHECKS) == 25
    assert {name for name, *_ in CASES} == set(CHECKS)


ROW = {
    "instruction_id_list": ["punctuation:no_comma", "keywords:existence", "length_constraints:number_words"],
    "kwargs": [
        {"num_words": None, "relation": None},
        {"keywords": ["sun"], "relation": None},
        {"num_words": 3.0, "relation": "at least", "keywords": None},  # what a data frame makes of it
    ],
}


def test_share_and_strict():
    for answer, share in (("The sun is up", 1.0), ("The sun, yes", 2 / 3), ("Moon", 1 / 3), ("Moon, stars", 0.0)):
        assert instructions.verify(wrap(answer), ROW).score == pytest.approx(share)
        assert instructions.verify(wrap(answer), ROW, strict=True).score == float(share == 1)


def test_an_instruction_twice_counts_twice():
    limits = [{"num_words": n, "relation": "at least"} for n in (20, 2)]
    row = {"instruction_id_list": ["length_constraints:number_words"] * 2, "kwargs": limits}
    assert instructions.verify(wrap("one two three"), row).score == 0.5


def test_the_answer_is_judged_not_the_thinking():
    row = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    whole = "<think>First, second,</think>\n<answer>Third</answer>"
    assert instructions.verify(whole, row).score == 1.0
    assert instructions.verify(whole, row, whole=True).score == 0.0
    assert instructions.verify("<think>no comma", row).status == "unverifiable"
    assert instructions.verify("No comma", row).score == 0.0
    assert instructions.verify("No comma", row, require_think=False).score == 1.0
    assert instructions.verify("No comma</think> here", row, prefilled=True).score == 1.0


def test_an_empty_answer_keeps_nothing():
    for answer in ("", "  \n", "...", "***"):
        verdict = instructions.verify(wrap(answer), {"instruction_id_list": ["punctuation:no_comma"]})
        assert (verdict.score, verdict.status) == (0.0, "unverifiable")


@pytest.mark.parametrize(
    ("names", "arguments", "said"),
    [
        (None, None, "instruction_id_list"),
        ([], [], "instruction_id_list"),
        ("punctuation:no_comma", None, "instruction_id_list"),
        (["punctuation:no_coma"], [{}], "no_comma"),
        (["punctuation:no_comma"], [{}, {}], "1 mappings"),
        (["punctuation:no_comma"], ["x"], "not a mapping"),
        (["punctuation:no_comma"], [{"keyword": "x"}], "keyword"),
        (["keywords:existence"], [{"keywords": []}], "keywords"),
        (["keywords:existence"], [{}], "keywords"),
        (["length_constraints:number_words"], [{"num_words": 3}], "relation"),
        (["length_constraints:number_words"], [{"num_words": 3, "relation": "around"}], "relation"),
        (["length_constraints:number_words"], [{"num_words": 3.5, "relation": "at least"}], "num_words"),
        (["keywords:letter_frequency"], [{"letter": "ab", "let_frequency": 1, "let_relation": "at least"}], "letter"),
        (["language:response_language"], [{"language": "tlh"}], "tlh"),
        (
            ["length_constraints:nth_paragraph_first_word"],
            [{"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "x"}],
            "nth_paragraph",
        ),
    ],
)
def test_bad_rows(names, arguments, said):
    row = {"instruction_id_list": names, "kwargs": arguments}
    verdict = instructions.verify(wrap("text"), row)
    assert (verdict.score, verdict.status) == (None, "error") and said in verdict.detail
    assert instructions.check_gold(row) == verdict.detail


def test_good_rows_and_their_wrong_answer():
    assert instructions.check_gold(ROW) is None
    assert instructions.verify(wrap(instructions.wrong_answer(ROW)), ROW).score == 0.0


def test_words_of_scripts_without_spaces():
    assert text.word_count("我喜欢 deep learning。") == 5
    assert text.word_count("สวัสดีครับ") == 2
    assert text.word_count("cafe\u0301 naïve") == 2


EXAMPLES = [(name, arguments) for name, arguments, *_ in CASES]


@given(st.text(alphabet='aZ .,!?*#"“”[]<>-\n\t1`{}:है中。', max_size=120))
@settings(max_examples=150, deadline=None)
def test_never_raises(answer):
    row = {"instruction_id_list": [n for n, _ in EXAMPLES], "kwargs": [a for _, a in EXAMPLES]}
    score = instructions.verify(wrap(answer), row).score
    assert score is not None and 0 <= score <= 1


@given(st.lists(st.text(alphabet="abcxyz", min_size=1, max_size=8), min_size=1, max_size=30))
def test_counts_of_made_text(made):
    joined = " ".join(made)
    assert text.word_count(joined) == len(made)
    assert text.occurrences(joined, made[0]) == made.count(made[0])
    assert text.bullets("\n".join(f"* {w}" for w in made)) == len(made)
    assert len(text.paragraphs("\n\n".join(made))) == len(made)
    assert text.sentence_count(" ".join(f"It was {w} then." for w in made)) == len(made)


@pytest.mark.parametrize(
    "unit",
    [
        " ",
        "\n",
        "\n ",
        "* ",
        "*",
        "**a",
        "[",
        "<<",
        '"',
        "“",
        ".",
        ". ",
        "a",
        "a'",
        "Section 1\n",
        "中",
        "है",
        "P.S.\n",
    ],
)
def test_hostile_ends_quickly(unit):
    answer = "x" + unit * (40_000 // len(unit)) + "x"
    row = {"instruction_id_list": [n for n, _ in EXAMPLES], "kwargs": [a for _, a in EXAMPLES]}
    start = time.monotonic()
    score = instructions.verify(wrap(answer), row).score
    assert score is not None and 0 <= score <= 1
    assert time.monotonic() - start < 4
