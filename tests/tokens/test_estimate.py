"""The estimate is near the exact count for every kind of text, and fast on hostile ones."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from aether.errors import BackendUnavailable
from aether.tokens import estimate as estimation
from aether.tokens import exact
from aether.tokens.estimate import estimate
from tests.tables import rows
from tests.tokens.samples import DIRECTORY, O200K_COUNTS, text_of

TOLERANCE = 0.10


@rows("kind", O200K_COUNTS)
def test_the_estimate_is_within_a_tenth_for_each_kind_of_text(kind):
    counted = estimate(text_of(kind))

    assert counted == pytest.approx(O200K_COUNTS[kind], rel=TOLERANCE)


def test_over_all_kinds_the_estimate_leans_to_no_side():
    total = sum(estimate(text_of(kind)) for kind in O200K_COUNTS)

    assert total == pytest.approx(sum(O200K_COUNTS.values()), rel=0.03)


def test_every_sample_has_a_recorded_count():
    assert {path.stem for path in DIRECTORY.glob("*.txt")} == set(O200K_COUNTS)


def test_the_recorded_counts_are_exact():
    try:
        found = {kind: exact.exact("o200k_base", text_of(kind)) for kind in O200K_COUNTS}
    except BackendUnavailable as error:
        pytest.skip(str(error))

    assert found == O200K_COUNTS


def test_the_empty_text_has_no_tokens():
    assert estimate("") == 0


@rows("text", [" ", "\n", "a", "1", ".", "\0", "\ud800", "界", "😀", "\u0301", "\u200d", "'"])
def test_one_character_is_at_least_one_token(text):
    assert 1 <= estimate(text) <= 3


@rows(
    ("text", "tokens"),
    [
        ("word " * 1000, 1001),
        ("123456789", 3),
        ("don't", 1),
        (" " * 64, 1),
        ("-" * 64, 1),
        ("\n\n\n", 1),
        ('{"a":"b"}', 5),
        ("👍👍👍", 3),
        ("a" * 1000, 125),
    ],
)
def test_plain_pieces_have_their_exact_count(text, tokens):
    assert estimate(text) == pytest.approx(tokens, rel=0.12, abs=1)


# Exact counts of the million characters, where they are known to be easy: none is off by more than half.
@rows(
    ("character", "exact_tokens"),
    [(" ", 7813), ("\n", 62500), ("a", 125000), ("-", 15625), ("中", 1000000), ("0", 333334)],
)
def test_a_million_of_one_character_is_counted_in_one_pass(character, exact_tokens):
    assert 0.6 < estimate(character * 1_000_000) / exact_tokens < 2


@rows("unit", [" \n", "aA", "'s", "\0", "\ud800", "((", " (", "\t ", "́", "'"])
def test_hostile_repetition_is_counted_without_raising(unit):
    once, twice = estimate(unit * 200_000), estimate(unit * 400_000)

    assert twice == pytest.approx(2 * once, rel=0.01)


def test_long_words_cost_by_letter_beyond_the_pairs():
    assert estimate("x" + "abcdefghij" * 30) > estimate("x" + "abcdefghij" * 20) + 30


def test_the_locale_and_the_hash_seed_change_nothing():
    code = "from aether.tokens.estimate import estimate; print(estimate('Straße İstanbul ıI 12,5 ' * 50))"
    answers = set()
    for locale, seed in (("C", "0"), ("tr_TR.UTF-8", "1"), ("de_DE.UTF-8", "2")):
        environment = {**os.environ, "LC_ALL": locale, "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"}
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        answers.add(ran.stdout)

    assert len(answers) == 1


def test_counting_imports_no_tokenizer():
    code = "import sys, aether.tokens.counters as c; c.counter('estimate')('text'); print('tiktoken' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert ran.stdout == "False\n"


# Blocks from which letters are drawn at random: hardly any of them join a token, as in a text that nobody wrote.
RARE = {
    "han": (0x4E00, 0x9FFF), "hangul": (0xAC00, 0xD7A3), "jamo": (0x1100, 0x11FF), "cyrillic": (0x400, 0x4FF),
    "cherokee": (0x13A0, 0x13F5), "yi": (0xA000, 0xA48C), "ethiopic": (0x1200, 0x1248), "marks": (0x300, 0x36F),
}  # fmt: skip
# In o200k_base.
EXACT = {
    "han": 780, "hangul": 899, "jamo": 1192, "cyrillic": 595, "cherokee": 1200, "yi": 1191, "ethiopic": 800, "marks": 1144,
}  # fmt: skip


def rare_text(block):
    source, (first, last) = random.Random(block), RARE[block]
    letter = "e" if block == "marks" else ""
    return "".join(letter + chr(source.randint(first, last)) for _ in range(400))


@rows("block", [*RARE])
def test_letters_that_join_no_token_cost_about_what_they_cost(block):
    assert estimate(rare_text(block)) >= 0.75 * EXACT[block]


# The first article of the Universal Declaration of Human Rights, in scripts without a sample.
ARTICLES = [
    "כל בני אדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג איש ברעהו ברוח של אחווה. השרת לא מגיב אחרי העדכון של מסד הנתונים.",
    "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে। তাঁদের বিবেক এবং বুদ্ধি আছে; সুতরাং সকলেরই একে অপরের প্রতি ভ্রাতৃত্বসুলভ মনোভাব নিয়ে আচরণ করা উচিত।",
    "மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்; அவர்கள் மதிப்பிலும், உரிமைகளிலும் சமமானவர்கள், அவர்கள் நியாயத்தையும் மனச்சாட்சியையும் இயற்பண்பாகப் பெற்றவர்கள். அவர்கள் ஒருவருடனொருவர் சகோதர உணர்வுப் பாங்கில் நடந்துகொள்ளல் வேண்டும்.",
    "ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులును సమానులును నగుదురు. వారు వివేదనాంతఃకరణ సంపన్నులగుటచే పరస్పరము భ్రాతృభావముతో వర్తింపవలయును.",
    "تمام افراد بشر آزاد به دنیا می‌آیند و از لحاظ حیثیت و حقوق با هم برابرند. همه دارای عقل و وجدان هستند و باید نسبت به یکدیگر با روح برادری رفتار کنند.",
    "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით. მათ მინიჭებული აქვთ გონება და სინდისი და ერთმანეთის მიმართ უნდა იქცეოდნენ ძმობის სულისკვეთებით.",
    "Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ ու իրավունքներով։ Նրանք ունեն բանականություն ու խիղճ և միմյանց պետք է եղբայրաբար վերաբերվեն։",
    "ມະນຸດທຸກຄົນເກີດມາມີກຽດສັກສີ, ສິດທິ, ເສລີພາບ ແລະ ຄວາມສະເໝີພາບເທົ່າທຽມກັນ. ທຸກໆຄົນມີເຫດຜົນ ແລະ ຄວາມຄິດຄວາມເຫັນສ່ວນຕົວຂອງໃຜຂອງມັນ, ແຕ່ວ່າມະນຸດທຸກໆຄົນຄວນປະພຶດຕໍ່ກັນຄືກັນກັບເປັນອ້າຍນ້ອງກັນ.",
    "လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့် လည်းကောင်း၊ တူညီလွတ်လပ်သော အခွင့်အရေးများဖြင့် လည်းကောင်း၊ မွေးဖွားလာသူများ ဖြစ်သည်။",
    "មនុស្សទាំងអស់កើតមកមានសេរីភាព និងភាពស្មើៗគ្នា ក្នុងសិទ្ធិ និងសេចក្ដីថ្លៃថ្នូរ។ មនុស្សគ្រប់រូប សុទ្ធតែមានវិចារណញ្ញាណ និងសតិសម្បជញ្ញៈ។",
    "සියලු මනුෂ්‍යයෝ නිදහස්ව උපත ලබා ඇත. ගරුත්වයෙන් හා අයිතිවාසිකම්වලින් සමාන වෙති. යුක්ති අයුක්ති පිළිබඳ හැඟීමෙන් හා හෘදය සාක්ෂියෙන් යුත් ඔවුනොවුන්වුන්ට සැළකිය යුත්තේ සහෝදරත්වය පිළිබඳ හැඟීමෙනි.",
    "Всички хора се раждат свободни и равни по достойнство и права. Те са надарени с разум и съвест и следва да се отнасят помежду си в дух на братство.",
    "Барлық адамдар тумысынан азат және қадір-қасиеті мен құқықтары тең болып дүниеге келеді. Адамдарға ақыл-парасат, ар-ождан берілген, сондықтан олар бір-бірімен туыстық, бауырмалдық қарым-қатынас жасаулары тиіс.",
    "सर्व मानवी व्यक्ती जन्मतःच स्वतंत्र आहेत व त्यांना समान प्रतिष्ठा व समान अधिकार आहेत. त्यांना विचारशक्ती व सदसद्विवेकबुद्धी लाभलेली आहे.",
    "تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں۔ انہیں ضمیر اور عقل ودیعت ہوئی ہے۔ اس لئے انہیں ایک دوسرے کے ساتھ بھائی چارے کا سلوک کرنا چاہیئے۔",
]


# In o200k_base: as they are, and with their letters in random order.
ARTICLE_COUNTS = [65, 56, 76, 75, 44, 51, 47, 330, 67, 79, 103, 47, 66, 43, 46]
SHUFFLED_COUNTS = [92, 102, 153, 102, 77, 106, 104, 330, 89, 103, 134, 79, 129, 70, 92]


def shuffled(text):
    letters = [letter for letter in text if letter.isalpha()]
    random.Random(1).shuffle(letters)
    return "".join(letters.pop(0) if letter.isalpha() else letter for letter in text)


@rows(("text", "tokens", "tokens_shuffled"), [*zip(ARTICLES, ARTICLE_COUNTS, SHUFFLED_COUNTS, strict=True)])
def test_letters_of_prose_cost_more_in_random_order(text, tokens, tokens_shuffled):
    """Each text is a paragraph: the error of a longer one is smaller."""
    assert estimate(text) == pytest.approx(tokens, rel=0.23)
    assert estimate(shuffled(text)) >= 0.8 * tokens_shuffled


def test_the_recorded_counts_of_the_articles_are_exact():
    try:
        counts = [[exact.exact("o200k_base", form(text)) for text in ARTICLES] for form in (str, shuffled)]
    except BackendUnavailable as error:
        pytest.skip(str(error))

    assert counts == [ARTICLE_COUNTS, SHUFFLED_COUNTS]


def test_no_more_prices_are_kept_than_their_limit(monkeypatch):
    monkeypatch.setattr(estimation, "_CACHED_PIECES", 8)
    estimation._PRICES.clear()
    estimate(" ".join(f"w{chr(97 + nth)}x" for nth in range(20)))

    assert 0 < len(estimation._PRICES) <= 8
