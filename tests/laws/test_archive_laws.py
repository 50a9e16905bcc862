"""Laws of the pure archive, over random conversations, clocks, zones, boundaries and policies."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether import clock
from aether.conversation import archive_levels as forms
from aether.conversation import archive_retention as retention
from aether.conversation.archived import LEVELS, given_conversation, read_conversation, said
from aether.text.words import sentences
from tests import effort
from tests.archive.conversations import NOW, conversation, random_given
from tests.laws.json_values import keys, scalars, values
from tests.tables import rows

SEEDS = range(6)
# A person tries all of them when the rules or the choice of sentences change.
MORE_SEEDS = range(6, 200 if effort.FULL_TRIALS else 60)
TIERS = [SEEDS, pytest.param(MORE_SEEDS, marks=pytest.mark.slow)]
LEAP_DAYS = (
    datetime(2024, 2, 29, tzinfo=UTC),
    datetime(2028, 2, 29, 23, 59, 59, tzinfo=UTC),
    datetime(2000, 2, 29, tzinfo=UTC),
)


@cache
def found_of(seed):
    """Return a random conversation as read; nobody may change it."""
    return read_conversation(random_given(seed))[0]


@cache
def content_of(seed, level):
    return forms.form(found_of(seed), level)


def rank(level):
    return LEVELS.index(level)


def random_policy(random, *, of=retention.STANDARD):
    important, preserve, summary = sorted((random.random() for _ in range(3)), reverse=True)
    return retention.policy(
        {
            "important_threshold": important, "preserve_threshold": preserve, "summary_threshold": summary,
            "recent_threshold": random.random(), "recent_days": random.randint(0, 400),
            "user_marked_multiplier": 1 + random.random(), "weights": {part: random.uniform(0.01, 1) for part in retention.PARTS},
        },
        of=of,
    )  # fmt: skip


def random_boundaries(random):
    return retention.boundaries(
        dict(zip(LEVELS[1:], sorted(random.randint(0, 900) for _ in range(3)), strict=True))
    )


AGES = [
    (6, "full", "full"), (7, "full", "key_points"), (29, "full", "key_points"), (30, "key_points", "summary"),
    (89, "key_points", "summary"), (90, "summary", "metadata"), (364, "summary", "metadata"), (365, "metadata", "metadata"),
    (0, "full", "full"), (-3, "full", "full"), (4_000, "metadata", "metadata"),
]  # fmt: skip


@rows("days, default, research", AGES)
def test_the_level_of_an_age(days, default, research):
    """The ages of the original example, by the default boundaries and by its own."""
    for preset, wanted in (("default", default), ("research", research)):
        decided = retention.decide(conversation(days=days), now=NOW, boundaries=retention.boundaries(preset))
        assert (decided.days, decided.age_level) == (max(0, days), wanted)


@rows("first", LEAP_DAYS)
def test_an_age_is_whole_days_in_any_zone_and_over_leap_days(first):
    random = Random(str(first))
    for _ in range(50):
        days, seconds = random.randint(0, 2_000), random.randint(0, 86_399)
        zone = timezone(timedelta(minutes=random.randint(-720, 840)))
        found, _ = read_conversation({"messages": [], "created_at": first.astimezone(zone).isoformat()})
        later = first + timedelta(days=days, seconds=seconds)

        assert retention.age(found, later.astimezone(zone)) == retention.Age(days, clock.stamp(first))


@pytest.mark.parametrize("seeds", TIERS)
def test_a_clock_that_was_set_back_makes_nothing_younger_than_new(seeds):
    for seed in seeds:
        found = found_of(seed)
        early = datetime(1990, 1, 1, tzinfo=UTC)

        assert retention.age(found, early).days == 0
        assert retention.decide(found, now=early).level == "full"


@pytest.mark.parametrize("seeds", TIERS)
def test_ageing_only_ever_loses_detail(seeds):
    """A later look never grants a fuller level."""
    for seed in seeds:
        random, found = Random(seed), found_of(seed)
        policy, boundaries = random_policy(random), random_boundaries(random)
        times = sorted(NOW + timedelta(days=random.randint(-900, 900)) for _ in range(20))
        decided = [
            rank(retention.decide(found, now=now, boundaries=boundaries, policy=policy).level)
            for now in times
        ]

        assert decided == sorted(decided)


@pytest.mark.parametrize("seeds", TIERS)
def test_no_less_is_kept_than_a_rule_grants(seeds):
    """The level that wins is the fuller one of those by age and by score; a mark keeps everything."""
    for seed in seeds:
        random, found = Random(seed), found_of(seed)
        policy, boundaries = random_policy(random), random_boundaries(random)
        decided = retention.decide(found, now=NOW, boundaries=boundaries, policy=policy)

        by_score, _ = retention.level_of_score(retention.score(found, policy), decided.days, policy)
        by_age = retention.level_of_age(decided.days, boundaries)
        assert rank(decided.level) == min(rank(by_age), rank(by_score))
        assert decided.reason.endswith(".")
        assert (decided.rule == "age") == (decided.level == by_age)
        marked = retention.decide(found, now=NOW, boundaries=boundaries, policy=policy, marked=True)
        assert (marked.level, marked.rule) == ("full", "marked")
        assert marked.score.total >= decided.score.total


@pytest.mark.parametrize("seeds", TIERS)
def test_a_longer_rule_keeps_a_superset(seeds):
    """Later boundaries, lower thresholds and more recent days never lead to a lesser level."""
    for seed in seeds:
        random, found = Random(seed), found_of(seed)
        policy, boundaries = random_policy(random), random_boundaries(random)
        share = random.random()
        longer = policy._replace(
            important_threshold=policy.important_threshold * share, preserve_threshold=policy.preserve_threshold * share,
            summary_threshold=policy.summary_threshold * share, recent_threshold=policy.recent_threshold * share,
            recent_days=policy.recent_days + random.randint(0, 300),
        )  # fmt: skip
        later = retention.Boundaries(*(days + random.randint(0, 5) * 100 for days in boundaries))
        later = retention.Boundaries(*sorted(later))
        for days in (0, 7, 30, 90, 365, 800):
            now = clock.parse(retention.age(found, NOW).since) + timedelta(days=days)
            short = retention.decide(found, now=now, boundaries=boundaries, policy=policy)
            for more in (
                {"policy": longer, "boundaries": boundaries},
                {"policy": policy, "boundaries": later},
            ):
                assert rank(retention.decide(found, now=now, **more).level) <= rank(short.level)


@pytest.mark.parametrize("seeds", TIERS)
def test_a_form_is_made_of_whole_sentences_in_their_order(seeds):
    for seed in seeds:
        found = found_of(seed)
        source = [
            (one.at, line)
            for one in said(found)
            for line in (sentences(one.text) if not one.protected else [one.text])
        ]
        for level in ("key_points", "summary"):
            chosen = forms.chosen(found, level)
            spoken = [one for one in chosen if one.speaker in ("user", "assistant")]

            assert [one.order for one in chosen] == sorted({one.order for one in chosen})
            assert {(one.at, one.text) for one in spoken} <= set(source)
            content = content_of(seed, level)
            place = 0
            for one in chosen:
                place = forms.text_of(content).index(one.text, place) + len(one.text)


@pytest.mark.parametrize("seeds", TIERS)
def test_a_form_has_no_more_than_its_share(seeds):
    """A summary has at most 40 % of the text, and less than the key points; what must be kept is beside it."""
    for seed in seeds:
        found = found_of(seed)
        speech = sum(len(one.text) for one in forms.spoken(found))
        whole = sum(len(one.text) for one in said(found))
        summary, points = content_of(seed, "summary")["summary"], content_of(seed, "key_points")
        metrics = forms.measure(found, points)

        assert len(summary) <= 0.40 * whole
        assert 0 < len(summary) < metrics["chars"] < whole
        said_in = sum(
            len(one["content"]) for one in points["messages"] if one["role"] in ("user", "assistant")
        )
        protected = sum(len(one.text) for one in said(found) if one.protected)
        assert 0.5 * speech <= said_in <= 0.7 * speech + protected


@pytest.mark.parametrize("seeds", TIERS)
def test_what_must_be_kept_is_in_every_level_and_in_every_step(seeds):
    for seed in seeds:
        found = found_of(seed)
        for level in LEVELS[1:]:
            text = forms.text_of(content_of(seed, level))
            assert [one for one in found["kept"] if one not in text] == []


def test_a_description_is_bounded():
    paths = " ".join(f"src/part{nth}/very/long/{'x' * 60}/name{nth}.py" for nth in range(200))
    content = forms.form(conversation((("user", f"Code, plan, team: {paths}"),) * 30), "metadata")["metadata"]

    assert [
        *content
    ] == "id title created_at updated_at total_messages session_id topics key_entities summary_stats".split()
    assert len(json.dumps(content)) < 5_000
    assert len(content["topics"]) <= forms.MOST_TOPICS
    assert len(content["key_entities"]) == forms.MOST_ENTITIES


@pytest.mark.parametrize("seeds", TIERS)
def test_reading_and_forming_change_nothing_and_share_nothing(seeds):
    for seed in seeds:
        raw = random_given(seed)
        before = deepcopy(raw)
        found, _ = read_conversation(raw)
        whole = deepcopy(found)
        contents = [forms.form(found, level) for level in LEVELS]
        again = given_conversation(contents[0])
        assert again == raw == before
        assert list(again) == list(raw)
        for content in contents:
            forms.measure(found, content)
            content.clear()
        again["messages"].clear()

        assert found == whole
        assert raw == before


@pytest.mark.parametrize("seeds", TIERS)
def test_a_measure_is_a_share_and_full_keeps_everything(seeds):
    for seed in seeds:
        found = found_of(seed)
        for level in LEVELS:
            measured = forms.measure(found, content_of(seed, level))
            shares = measured["retention"].values()

            assert all(0 <= share <= 1 for share in shares)
            if level == "full":
                assert (measured["ratio"], set(shares)) == (1.0, {1.0})
            elif level != "metadata":
                assert 0 < measured["ratio"] < 1


@pytest.mark.parametrize("clean", [True, False])
def test_the_same_conversation_has_the_same_forms(clean):
    found, _ = read_conversation(random_given(11))
    if clean:
        found = json.loads(json.dumps(found))

    assert [forms.form(found, level) for level in LEVELS] == [
        forms.form(read_conversation(random_given(11))[0], level) for level in LEVELS
    ]


@given(
    st.lists(values(8) | st.fixed_dictionaries({"role": scalars(), "content": values(8)}), max_size=4),
    st.dictionaries(keys(), values(5)),
)
def test_no_conversation_is_refused_or_lost_for_what_is_in_it(messages, fields):
    found, findings = read_conversation({**fields, "messages": messages, "created_at": "2026-01-01"})

    assert len(found["messages"]) == len(messages)
    assert all(one.fix and one.where.startswith("conversation") for one in findings)
    for level in LEVELS:
        content = forms.form(found, level)
        assert json.loads(json.dumps(content)) == content
        forms.measure(found, content)
    assert retention.decide(found, now=NOW).level in LEVELS
