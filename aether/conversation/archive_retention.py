"""Retention: how old and how important a conversation is, and the level that it keeps for that.

Its age is in whole days since it was last used. The score is a weighted sum of six parts, each between 0 and 1
(docs/archive.md). The fuller one of the level by age and the level by score wins, so that importance only ever keeps
more. A marked conversation stays full. A rule that keeps for longer keeps a superset: a higher score, a lower threshold
or a later boundary never leads to a lesser level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from aether import clock
from aether.conversation.archived import LEVELS, Conversation, Level, fuller, said
from aether.errors import InvalidInput, require_one_of, shown
from aether.text.words import pluralize, words

Rule = Literal["marked", "important", "recent", "score", "age"]
Which = Literal["messages", "updated_at", "created_at", "known", "unknown"]

PARTS = (
    "message_count", "response_quality", "topic_diversity", "time_span", "user_marked", "question_density",
)  # fmt: skip
# A conversation of so many messages, or hours, has the whole of that part.
MANY_MESSAGES, MANY_HOURS = 20, 24
# The quality of a conversation in which only one side speaks, and its span if no two times are known.
ONE_SIDED, NO_SPAN = 0.5, 0.1
# So many words of a topic show that it was one.
TOPIC_HITS = 2
# Of five words one question is as many as anybody asks.
QUESTION_FACTOR = 5
# The keywords of each topic, as whole words in any inflection.
TOPICS: Mapping[str, str] = {
    "technical": "code programming algorithm function bug debug api database",
    "personal": "feel think opinion prefer like personal life",
    "work": "project task deadline meeting team work job",
    "learning": "learn study understand explain tutorial help",
    "planning": "plan schedule organize goal strategy",
    "creative": "design create write art music story",
}
# Words that open a question, or could.
_QUESTIONS = frozenset("how what when where why which who can could would should is are do does did".split())
# A hundred years: a longer age is a slip of the keyboard.
MOST_DAYS = 36_525


class Boundaries(NamedTuple):
    """The ages in days from which the levels below `full` apply."""

    key_points: int = 30
    summary: int = 90
    metadata: int = 365


DEFAULT = Boundaries()
PRESETS: Mapping[str, Boundaries] = {"default": DEFAULT, "research": Boundaries(7, 30, 90)}


class Age(NamedTuple):
    """The age of a conversation."""

    days: int
    """Whole days, never negative."""
    since: str
    """The time it counts from; "" if none is known, and then it is 0."""


def boundaries(given: Mapping[str, Any] | str | None = None) -> Boundaries:
    """Return the boundaries of a preset, or the `given` ones, with the defaults for the others.

    Raises:
        InvalidInput: no such preset or level, a boundary that is not a number of whole days, or one below that of a fuller level.

    >>> boundaries("research"), boundaries({"metadata": 400}).metadata
    (Boundaries(key_points=7, summary=30, metadata=90), 400)
    """
    where = "archive.boundaries"
    if given is None:
        return DEFAULT
    if isinstance(given, str):
        if given in PRESETS:
            return PRESETS[given]
        raise InvalidInput(f"{shown(given)} is not a preset.", fix=f"Use one of {', '.join(PRESETS)}.", where=where)  # fmt: skip
    unknown = given.keys() - set(LEVELS[1:]) if isinstance(given, Mapping) else given
    if unknown:
        raise InvalidInput(f"{shown(unknown)} has no boundary.", fix=f"Give days for {', '.join(LEVELS[1:])}.", where=where)  # fmt: skip
    for name, days in given.items():
        if isinstance(days, bool) or not isinstance(days, int) or not 0 <= days <= MOST_DAYS:
            raise InvalidInput(f"{shown(days)} is not an age.", fix=f"Give days, 0 to {MOST_DAYS}.", where=f"{where}.{name}")  # fmt: skip
    merged = DEFAULT._replace(**given)
    if not merged.key_points <= merged.summary <= merged.metadata:
        what = f"{merged.key_points}, {merged.summary}, {merged.metadata} do not ascend."
        fix = "Give each level an age that is not below that of the previous one."
        raise InvalidInput(what, fix=fix, where=where)
    return merged


def age(conversation: Conversation, now: datetime) -> Age:
    """Return the age of `conversation` at `now`, an aware time; 0 if its times are later, or none is known."""
    since, _ = last_used(conversation)
    return Age(max(0, (now - clock.parse(since)).days) if since else 0, since)


def last_used(conversation: Conversation) -> tuple[str, Which]:
    """Return the time from which the age of a conversation counts, "" if none is known, and the field it is from.

    That is the newest message, else `updated_at`, else `created_at`. Of a conversation that has lost detail, it is `known`,
    the time of when it was whole: its last message may be missing.
    """
    times: dict[Which, str] = {
        "known": conversation.get("known", {}).get("since", ""),
        "messages": max(conversation["times"], default=""),
        "updated_at": conversation["updated_at"],
        "created_at": conversation["created_at"],
    }
    return next(((since, which) for which, since in times.items() if since), ("", "unknown"))


def level_of_age(days: int, boundaries: Boundaries = DEFAULT) -> Level:
    """Return the level that an age asks for.

    >>> [level_of_age(days) for days in (29, 30, 89, 90, 364, 365)]
    ['full', 'key_points', 'key_points', 'summary', 'summary', 'metadata']
    """
    if days >= boundaries.metadata:
        return "metadata"
    if days >= boundaries.summary:
        return "summary"
    return "key_points" if days >= boundaries.key_points else "full"


class Policy(NamedTuple):
    """The settings of retention."""

    important_threshold: float = 0.7
    """From this score on a conversation stays full."""
    recent_threshold: float = 0.5
    """From this score on it stays full for `recent_days`."""
    preserve_threshold: float = 0.4
    """From this score on it keeps its key points."""
    summary_threshold: float = 0.2
    """From this score on it keeps a summary."""
    recent_days: int = 30
    user_marked_multiplier: float = 1.5
    """The factor of a marked conversation's score."""
    weights: Mapping[str, float] = {
        "message_count": 0.20, "response_quality": 0.25, "topic_diversity": 0.15, "time_span": 0.10,
        "user_marked": 0.20, "question_density": 0.10,
    }  # fmt: skip


STANDARD = Policy()


class Score(NamedTuple):
    """The importance of a conversation, 0 to 1, and the parts it is made of, before their weights."""

    total: float
    parts: Mapping[str, float]


class Decision(NamedTuple):
    """The level of a conversation at an instant, and the rule that decided it."""

    level: Level
    age_level: Level
    retention_level: Level
    rule: Rule
    score: Score
    days: int
    since: str
    reason: str
    """The rule in words."""


# The numbers that each setting may have.
_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(
        ("important_threshold", "recent_threshold", "preserve_threshold", "summary_threshold"), (0, 1)
    ),
    "recent_days": (0, MOST_DAYS),
    "user_marked_multiplier": (1, 10),
}


def policy(changes: Mapping[str, Any] | None = None, *, of: Policy = STANDARD) -> Policy:
    """Return the policy `of` with `changes`; unnamed `weights` stay as they are.

    Raises:
        InvalidInput: an unknown setting or weight, a value that is not a number in its range, weights without any above 0, or
            thresholds that do not descend from full to summary.

    >>> policy({"weights": {"message_count": 0.3}, "preserve_threshold": 0.45}).weights["message_count"]
    0.3
    """
    if not isinstance(changes, (Mapping, type(None))):
        raise InvalidInput(f"{shown(changes)} is not a policy.", fix="Give an object.", where="policy")
    settings = dict(changes or {})
    weights = settings.pop("weights", {})
    if not isinstance(weights, Mapping):
        raise InvalidInput(f"{shown(weights)} are not weights.", fix="Give an object.", where="policy.weights")  # fmt: skip
    _require_in_range(settings, _RANGES, "policy")
    _require_in_range(weights, dict.fromkeys(PARTS, (0, 1)), "policy.weights")
    merged = of._replace(**settings, weights={**of.weights, **weights})
    if not any(merged.weights.values()):
        raise InvalidInput("no weight is above 0.", fix="Give one part a weight.", where="policy.weights")
    thresholds = [merged.important_threshold, merged.preserve_threshold, merged.summary_threshold]
    if thresholds != sorted(thresholds, reverse=True):
        what = f"the thresholds {', '.join(map(str, thresholds))} do not descend."
        raise InvalidInput(what, fix="Give important ≥ preserve ≥ summary.", where="policy")
    return merged


def _require_in_range(
    settings: Mapping[str, Any], ranges: Mapping[str, tuple[float, float]], where: str
) -> None:
    for name, value in settings.items():
        require_one_of(name, ranges, "a setting", where=where)
        least, most = ranges[name]
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not least <= value <= most or (name == "recent_days" and value != int(value)):
            what = f"{shown(value)} is not a number from {least} to {most}."
            raise InvalidInput(what, fix="Correct it.", where=f"{where}.{name}")


def score(conversation: Conversation, policy: Policy = STANDARD, *, marked: bool = False) -> Score:
    """Return the importance of `conversation`; 0 without messages.

    The parts of a conversation that has lost detail are those measured of its full form.
    """
    parts = dict(conversation.get("known", {}).get("importance") or _parts(conversation))
    if not parts:
        return Score(0.0, dict.fromkeys(PARTS, 0.0))
    is_marked = marked or is_marked_by_itself(conversation)
    parts["user_marked"] = float(is_marked)
    total = sum(policy.weights[part] * parts[part] for part in PARTS) / sum(policy.weights.values())
    total *= policy.user_marked_multiplier if is_marked else 1
    return Score(round(min(1.0, total), 4), parts)


def is_marked_by_itself(conversation: Conversation) -> bool:
    """Return whether the metadata of a conversation marks it as important."""
    return conversation["metadata"].get("user_marked_important") is True


def _parts(conversation: Conversation) -> dict[str, float]:
    if not conversation["messages"]:
        return {}
    texts = [text for text in said(conversation) if text.speaker in ("user", "assistant")]
    of_user = {text.at for text in texts if text.speaker == "user"}
    fewer, larger = sorted((len(of_user), len({text.at for text in texts} - of_user)))
    speech = "\n".join(text.text for text in texts)
    spoken_words = list(words(speech))
    questions = speech.count("?") + sum(word in _QUESTIONS for word in spoken_words)
    topics = sum(hits >= TOPIC_HITS for hits in topic_hits(spoken_words).values())
    times = {clock.parse(time) for time in conversation["times"] if time}
    hours = (max(times) - min(times)).total_seconds() / 3600 if times else 0
    parts = {
        "message_count": len(conversation["messages"]) / MANY_MESSAGES,
        "response_quality": fewer / larger if fewer else ONE_SIDED,
        "topic_diversity": topics / len(TOPICS),
        "time_span": hours / MANY_HOURS if len(times) > 1 else NO_SPAN,
        "user_marked": 0.0,
        "question_density": QUESTION_FACTOR * questions / len(spoken_words) if spoken_words else 0.0,
    }
    return {name: round(min(1.0, value), 4) for name, value in parts.items()}


def topic_hits(spoken_words: Iterable[str]) -> dict[str, int]:
    """Return the number of words, in small letters, that belong to each topic, the most frequent first.

    >>> topic_hits("the unlikely explanation of the airplane plans".split())
    {'planning': 1}
    """
    hits = Counter(topic for word in spoken_words for topic in _topics_by_word().get(word, ()))
    return dict(sorted(hits.items(), key=lambda entry: (-entry[1], entry[0])))


@lru_cache(maxsize=1)
def _topics_by_word() -> dict[str, list[str]]:
    topics: dict[str, list[str]] = {}
    for topic, keywords in TOPICS.items():
        for keyword in keywords.split():
            for form in _inflected(keyword):
                topics.setdefault(form, []).append(topic)
    return topics


def _inflected(word: str) -> set[str]:
    """Return the inflections of a word, and a few forms that no text has."""
    bare, doubled = word.removesuffix("e"), word + word[-1]
    forms = {word} | {f"{word}{end}" for end in ("s", "es")} | {f"{bare}{end}" for end in ("ed", "ing", "er")}
    forms |= {f"{doubled}ed", f"{doubled}ing"}
    return forms | ({f"{word[:-1]}ies", f"{word[:-1]}ied"} if word.endswith("y") else set())


def level_of_score(score: Score, days: int, policy: Policy = STANDARD) -> tuple[Level, Rule]:
    """Return the level that a score keeps at an age, and the rule that decides it."""
    if score.total >= policy.important_threshold:
        return "full", "important"
    if days <= policy.recent_days and score.total >= policy.recent_threshold:
        return "full", "recent"
    if score.total >= policy.preserve_threshold:
        return "key_points", "score"
    return ("summary" if score.total >= policy.summary_threshold else "metadata"), "score"


def decide(
    conversation: Conversation, *, now: datetime, boundaries: Boundaries = DEFAULT, policy: Policy = STANDARD, marked: bool = False,
) -> Decision:  # fmt: skip
    """Return the level of `conversation` at `now`: the fuller of the levels by age and by score, `full` if it is marked."""
    days, since = age(conversation, now)
    by_age = level_of_age(days, boundaries)
    importance = score(conversation, policy, marked=marked)
    by_score, rule = level_of_score(importance, days, policy)
    if importance.parts["user_marked"] or marked:
        by_score, rule = "full", "marked"
    level = fuller(by_age, by_score)
    if level == by_age and rule != "marked":
        rule = "age"
    aged, name = pluralize(days, "days"), level.replace("_", " ")
    reason = {
        "marked": "Marked as important: it stays full.",
        "important": f"High importance ({importance.total:.2f}): it stays full.",
        "recent": f"Used {aged} ago with an importance of {importance.total:.2f}: it stays full.",
        "score": f"An importance of {importance.total:.2f} keeps its {name}, although it is {aged} old.",
        "age": f"Last used {aged} ago: {name}."
        if since
        else "No time of it is known, so that it does not age.",
    }[rule]
    return Decision(level, by_age, by_score, rule, importance, days, since, reason)
