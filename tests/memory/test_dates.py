from aether.memory.search import Date, date_match, dates
from tests.tables import rows


@rows(
    ("query", "found"),
    [
        ("what happened on October 3rd, 2023?", [Date("2023", "10", "03")]),
        ("the 3rd of October 2023", [Date("2023", "10", "03")]),
        ("in May", [Date("", "05", "")]),
        ("we may march on", []),
        ("since 2023-10", [Date("2023", "10", "")]),
        ("on 2023-10-03", [Date("2023", "10", "03")]),
        ("release 2023.10", []),
    ],
)
def test_dates_are_read_as_they_are_written(query, found):
    assert dates(query) == found


@rows(
    ("date", "near"),
    [
        (Date("2023", "10", "13"), "day"),
        (Date("", "10", "13"), "day"),
        (Date("2023", "10", ""), "month"),
        (Date("2023", "10", "14"), ""),
        (Date("2022", "10", "13"), ""),
        (Date("", "09", ""), ""),
    ],
)
def test_a_time_is_near_a_date_that_it_falls_on(date, near):
    assert date_match(date, "2023-10-13T08:00:00.000000Z") == near


def test_no_time_is_near_no_date():
    assert date_match(Date("", "10", ""), "") == ""
