from aether.text.words import BASE_FORMS, MAX_TERM_CHARS, PART_WEIGHT, query_terms, term, terms
from tests.tables import rows


@rows(
    ("one", "other"),
    [
        ("bought", "buys"),
        ("Caroline's".casefold(), "caroline"),
        ("children", "child"),
        ("decided", "decision"),
    ],
)
def test_forms_of_one_word_give_one_term(one, other):
    assert term(one) == term(other)


def test_every_irregular_form_leads_to_a_base_that_leads_no_further():
    assert BASE_FORMS["bought"] == "buy"
    assert not set(BASE_FORMS.values()) & set(BASE_FORMS)


def test_stopwords_keep_their_place_but_add_no_length():
    found = terms("the state of the art")

    assert found.words == ("the", "state", "of", "the", "art")
    assert found.length == 2


def test_compound_names_are_found_by_their_parts():
    assert terms("getUserName fetch_user").words == ("getusernam", "fetch", "user")
    assert terms("getUserName").parts == ("get", "user", "name")
    assert query_terms("getUserName").weights["user"] == PART_WEIGHT


@rows("name", ["PostgreSQL", "MySQL", "NoSQL"])
def test_a_proper_name_is_not_found_by_its_last_letters(name):
    assert terms(name).parts == ()


def test_other_names_that_end_in_capitals_are_compound():
    assert terms("parseJSON HTTPServer getUserID").parts == (
        "pars",
        "json",
        "http",
        "server",
        "get",
        "user",
        "id",
    )


def test_single_characters_of_scripts_without_spaces_are_terms_of_a_text_only():
    assert terms("東京都").words == ("東京", "京都")
    assert terms("東京都").parts == ("東", "京", "都")
    assert query_terms("東京都").weights == {"東京": 1.0, "京都": 1.0}
    assert query_terms("都").weights == {"都": 1.0}


def test_a_query_of_stopwords_only_asks_for_the_stopwords():
    assert query_terms("to be or not").weights == {"not": 1.0}
    assert set(query_terms("to be or").weights) == {"to", "be", "or"}


def test_a_query_remembers_how_its_words_were_written():
    assert query_terms("Retries FAILED").spelled == {"retri": "Retries", "fail": "FAILED"}
    assert query_terms("日本語").spelled == {"日本": "日本", "本語": "本語"}


def test_long_runs_are_known_by_their_beginning():
    assert terms("x9" * 5000).words == ("x9" * (MAX_TERM_CHARS // 2),)


def test_text_without_words_has_no_terms():
    assert terms("!? …") == ((), (), 0)
    assert query_terms("!?") == ({}, {}, ())
