"""The state of the work and its next step, from the last messages of the last conversation.

The last message of a turn is an agent's account to a person, so it is shown automatically; what was said on the way is not.
The newest account says most; an account that the person turned down says nothing. The
next step is what the last account asks or announces, the tasks that are not done, and what the host's own summary names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import dropwhile, islice, takewhile

from aether.memory.briefing.block import Line
from aether.memory.capture.notes import CUT, INTERRUPTED, RULE_TYPES
from aether.text.accounts import (
    HEADING,
    LINE_CHARS,
    NAMELESS_WORDS,
    OPENING_WORDS,
    OPTION,
    Paragraph,
    announces,
    asks,
    asks_back,
    asks_leave,
    blocks,
    change_of,
    changes,
    checks_in,
    claims,
    fixes_all,
    goes_on,
    introduces,
    is_ahead,
    is_aside,
    is_offer,
    is_option,
    lasting,
    leads_in,
    left_open,
    names_defect,
    names_step,
    paragraphs,
    passes_soon,
    picks,
    proposes,
    question_of,
    rate_change,
    reason_of,
    recommended,
    refers,
    refuses,
    reports_work,
    says_why,
    step_of,
    supposes,
    undoes,
    was_wrong,
    whole,
)
from aether.text.accounts import (
    reports as sentences_of_report,
)
from aether.text.cleaning import without_emphasis
from aether.text.regex import lazy
from aether.text.words import sentences
from aether.tuples import NamedTuple
from aether.types import Item

# Characters shown of the newest account, of the one before it, and of each earlier one.
SHARES = (1500, 400, 260)
# Characters of all accounts of earlier work together.
EARLIER_CHARS = 2_400
MOST_ACCOUNTS = 60
# An earlier account that as many edits and requests followed is history: most of it was changed since.
MOST_STEPS = 15
MOST_TASKS = 4
# A report of fewer words leaves it to the commit before it to say what was changed.
BARE_WORDS = 12
LAST_PARAGRAPHS = 3
# Older answers were refined or dropped since.
MOST_ANSWERS = 2
# Why something was edited is shown of so many turns with edits: what came before was mostly changed since.
REASON_TURNS = 5

_COMMIT_NAME = lazy(r"\[\S+ ([0-9a-f]{7,})\]|([0-9a-f]{7,}) |https://\S+/(?:pull|issues)/(\d+)")
_CHANGED_FILE = lazy(r"(?:Changed|Created|Deleted) (?:\S*/)?([^\s/:]+)")
_EDIT = lazy(r"(?P<action>Changed|Reverted) (?P<path>.+?)(?: \((?P<number>\d+) edits\))?", re.DOTALL)
# A sentence about the other's words, or about one's own understanding or success: no answer.
_ACKNOWLEDGES = lazy(
    r"(?:(?:ah|oh|ha|hmm|ok(?:ay)?|yes|yeah)\W+)?(?:got it|you(?:'re| are)(?: \w+)? right|thank(?:s| you)|understood|makes sense|fair enough"
    r"|(?:ok(?:ay)?|good|great|nice|interesting|fair|perfect|excellent)(?: (?:catch|point|question|call|idea|thinking)s?)?)"
    r"(?: (?:for|on|about) (?:\w+ ){0,3}\w+)?(?:\W+you're right)?\W*"
    r"|now i (?:have|see|understand)\b.*|i've successfully\b.*|(?:yes|yeah|sure),? let me\b.*|(?!.*\b(?:no|not|never|don't)\b).{0,60}!",
    re.IGNORECASE | re.DOTALL,
)
# These answer though they suppose ("I would not merge it").
_ANSWERS = lazy(r"(?:(?:short|honest|quick) answer|verdict|yes|no|not|i (?:would|wouldn't))\b", re.IGNORECASE)
# Only the question says what such an answer means.
_LEANS = lazy(
    r"(?:\w+, )?(?:exactly )?(?:that|this|these|those)(?:'s\b|\W*\Z| (?:is|are|was|were|works?|does|did|has|should|can|will)\b)"
    r"|.*\bexactly (?:that|this)\b|\w+, it (?:is|does|was|did|has|should|can|will)(?:n't)?\W*\Z",
    re.IGNORECASE,
)
_DENIES = lazy(r"(?:yes|no|not|neither|both)\b[^.]*\w", re.IGNORECASE)
_SPAN = lazy(r"`([^`]+)`")
_FILE = lazy(r"\w\.[A-Za-z]\w{0,4}\b(?!\()")
RUNS = frozenset({"command", "solution", "error"})
_PASSED = RUNS - {"error"}
# A task that a command alone fulfils: agents often do not tick it.
_ONLY_CHECKS = lazy(
    r"(?:re-?)?(?:run|execute|verify|validate)\b.*\b(?:tests?|lint|builds?|checks?)\b", re.IGNORECASE
)
_CHECKS = lazy(r"(?:(?<=py)|\b)(test|lint|build|check)")
BEGUN = "an edit followed"
IN_PROGRESS = "in progress"
ISSUE = lazy(r"https://\S+/issues/\d+")


class Account(NamedTuple):
    """The last message of a turn, or the message of a commit: its paragraphs, and whether its turn changed anything."""

    item: Item
    paragraphs: tuple[Paragraph, ...]
    worked: bool
    published: bool = False
    """Whether it is the message of a commit or pull request."""
    reply: str = ""
    """What the person wrote after it."""
    steps: int = 0
    """How many edits and requests followed it."""
    asked: int = 0
    """How many of these were requests."""
    ran: bool = False
    """Whether its turn ran a command that may have changed something."""

    @property
    def at(self) -> str:
        """Return its time."""
        return self.item["metadata"]["timestamp"]


def accounts(items: Sequence[Item]) -> list[Account]:
    """Return the accounts of one conversation, the newest first, without those that the person turned down.

    `items` are those of the conversation, the newest first.
    """
    found: list[Account] = []
    turned_down = fixed = talked = False
    reply = ""
    undone = undone_in(items) | _amended(items)
    touched: set[str] = set()
    steps = asked = 0
    for item in items:
        role = item["metadata"].get("role", "")
        _record_work(found, item)
        if role == "request" or (not role and item["type"] == "user_input"):
            steps += 1
            asked += 1
            talked = True
            reply = item["metadata"].get("reply") or _words(item["content"])
            turned_down = refuses(reply)
        elif item["type"] == "code_change":
            steps += 1
            changed = _CHANGED_FILE.match(item["content"])
            if changed and not changed[1].lower().endswith(".md"):
                touched.add(changed[1])
        elif role == "commit":
            if not turned_down and item["id"] not in undone:
                found.append(Account(item, _published(item["content"]), worked=True, published=True))
        elif _is_account(item) and not (item["metadata"].get("fate") == CUT and talked):
            talked = True
            if not turned_down and item["id"] not in undone:
                said = paragraphs(item["content"], tables=True)
                later = bool(steps or found)
                # What a review found before a commit, the commit may have repaired.
                repaired = fixed or any(one.published for one in found)
                kept = (one for one in said if not _is_over(one, touched, repaired=repaired, later=later))
                left = tuple(one for one in (map(lasting, kept) if later else kept) if one.text)
                found.append(Account(item, left, worked=False, reply=reply, steps=steps, asked=asked))
                fixed = fixed or fixes_all(said)
            turned_down = False
        if len(found) == MOST_ACCOUNTS:
            break
    return found


def _amended(items: Iterable[Item]) -> set[str]:
    """Return the ids of the commits that were amended since; `items` are the newest first."""
    found: set[str] = set()
    amends: list[str] = []  # the times of those whose commit is not found yet
    for item in items:
        at = item["metadata"]["timestamp"]
        if item["metadata"].get("role") == "commit":
            # One of the same time is that which the amend made. Several without a message of their own have one commit.
            found |= {item["id"]} if any(at < time for time in amends) else set()
            amends = [time for time in amends if time <= at]
    return found


def _record_work(found: list[Account], item: Item) -> None:
    """Record in the account of a turn, the last of `found`, what `item` shows that it did."""
    if found and not found[-1].published:
        if item["type"] == "code_change" or item["metadata"].get("role") == "commit":
            found[-1] = found[-1]._replace(worked=True)
        elif item["type"] in RUNS:
            found[-1] = found[-1]._replace(ran=True)


def undone_in(items: Sequence[Item]) -> set[str]:
    """Return the ids of the accounts, reasons and edits of work that was undone, and of the edits that undid it.

    `items` are those of one conversation, the newest first.
    """
    return _undone_on_demand(items) | _reverted(items)


def _undone_on_demand(items: Iterable[Item]) -> set[str]:
    """Return those of the newest work before each message that demands to undo it."""
    found: set[str] = set()
    edits: set[str] = set()  # since the request that comes next
    undoing = changed = acted = False
    newest = True
    for item in items:
        role = item["metadata"].get("role", "")
        acted = acted or item["type"] in RUNS or role == "tree"
        if role == "request":
            demanded = undoes(item["metadata"].get("reply") or _words(item["content"]))
            # If the agent did nothing, and the person went on, nothing was undone.
            demanded = demanded and (acted or newest)
            found |= edits if demanded else set()
            undoing = (undoing and not changed) or demanded
            changed, edits, acted, newest = False, set(), False, False
        elif item["type"] == "code_change":
            acted = True
            (found if undoing else edits).add(str(item.get("id", "")))
        elif undoing and (role == "change" or _is_account(item)):
            found.add(item["id"])
            changed = changed or reports_work(paragraphs(item["content"]))
        changed = changed or item["type"] == "code_change"
    return found


def _reverted(items: Iterable[Item]) -> set[str]:
    """Return those of edits that later ones reverted, and of what was said in turns that left no other edit."""
    found: set[str] = set()
    reverts: dict[str, int] = {}
    said: list[str] = []  # in the turn that is being read
    edits: set[bool] = set()  # of that turn, whether each was reverted
    for item in items:
        # A message of nothing but a rule is no request.
        if item["metadata"].get("role") == "request" or item["type"] in RULE_TYPES:
            found |= {*said} if edits == {True} else set()
            said, edits = [], set()
        elif _is_account(item) or item["metadata"].get("role") == "change":
            said.append(item["id"])
        elif item["type"] == "code_change" and (edit := _EDIT.fullmatch(item["content"].partition(": ")[0])):
            path, number = edit["path"], int(edit["number"] or 1)
            if edit["action"] == "Reverted":
                reverts[path] = reverts.get(path, 0) + number
                found.add(str(item.get("id", "")))
            else:
                left = reverts.get(path, 0) - number
                edits.add(left >= 0)
                found |= {str(item.get("id", ""))} if left >= 0 else set()
                # What is left of these was not reverted, nor what came before them.
                reverts[path] = max(left, 0)
        elif item["type"] == "code_change":
            edits.add(False)
    return found


def reported_on(items: Iterable[Item]) -> set[str]:
    """Return the ids of the requests that a final report followed in their conversation; `items` are the newest first."""
    found: set[str] = set()
    reported: set[str] = set()  # conversations with a report since their request that comes next
    for item in items:
        own = item["metadata"].get("conversation", "")
        if item["metadata"].get("role") == "request":
            found |= {str(item.get("id", ""))} if own in reported else set()
            reported.discard(own)
        elif _is_report(item):
            reported.add(own)
    return found


def under_way(items: Iterable[Item]) -> bool:
    """Return whether the newest request has no final report yet; `items` are those of one conversation, the newest first."""
    for item in items:
        role = item["metadata"].get("role", "")
        if role == "request":
            return True
        if _is_report(item):
            return False
    return False


def last_words(items: Iterable[Item]) -> Iterator[Line]:
    """Yield what the agent said on the newest request since its last edit or command, if it has no final report yet.

    What it said before those, it has acted on. `items` are those of one conversation, the newest first.
    """
    for item in items:
        role = item["metadata"].get("role", "")
        over = role == "request" or _is_report(item)
        if over or is_step(item):
            return
        said = role in ("change", "said", "answer") and not item["metadata"]["caste"]
        reports_some = said and any(not one.is_bare for one in sentences_of_report(item["content"]))
        if reports_some and (text := " ".join(whole(item["content"].split("```")[0]).split())):
            yield Line("state", text, item["metadata"]["timestamp"], ids=(item["id"],), evidence="agent")


def is_step(item: Item) -> bool:
    """Return whether `item` is an edit or a command."""
    return item["type"] == "code_change" or item["type"] in RUNS


def delegated(items: Iterable[Item]) -> Iterator[Line]:
    """Yield what the sub-agents reported that work for the newest request, as long as there is no account of their results.

    `items` are those of one conversation, the newest first.
    """
    for item in items:
        role = item["metadata"].get("role", "")
        if role == "request" or _is_report(item):
            return
        if role == "answer" and item["metadata"]["caste"]:
            for text in claims(paragraphs(item["content"], tables=True), SHARES[1]):
                yield Line(
                    "results", text, item["metadata"]["timestamp"], ids=(item["id"],), evidence="agent"
                )


def _is_over(one: Paragraph, touched: Collection[str], *, repaired: bool, later: bool) -> bool:
    """Return whether a paragraph says what was wrong before its file was changed, or before all may be `repaired`.

    Where it names no file, any of those `touched` may be its own. What was running when it was said is over if anything
    happened `later`.
    """
    if names_defect(one.text):
        own = any(_names(one.text, name) for name in touched)
        if repaired or own or (touched and not _FILE.search(one.text)):
            return True
    return later and passes_soon(one.text)


def _names(text: str, name: str) -> bool:
    at = text.find(name)
    return at >= 0 and not (text[at - 1 : at].isalnum() or text[at + len(name) :][:1].isalnum())


def _is_account(item: Item) -> bool:
    metadata = item["metadata"]
    role = metadata.get("role", "")
    # Captured before items had roles, an outcome was the last message of a turn.
    before_roles = not role and item["type"] == "outcome" and "pointer" in metadata
    return not metadata["caste"] and (role == "answer" or before_roles)


def _is_report(item: Item) -> bool:
    """Return whether an account is the last word of its turn: after others the work went on."""
    return _is_account(item) and item["metadata"].get("fate") not in (CUT, INTERRUPTED)


def _words(content: str) -> str:
    """Return the person's words of an item, without the question that they answer."""
    return content.rpartition("\nAnswered: ")[2]


def reports(found: Sequence[Account], on_the_way: Iterable[Line] = ()) -> dict[str, list[Line]]:
    """Return the lines of `state`, `published`, `answers` and `results`: what the newest accounts say, and the best of each earlier one.

    What an account says that reports no work is an answer: a design is not built by it. Results are the best line of
    each account, then the rest. `reasons` are those said `on_the_way`, what introduces something first.

    The newest account of work says most; an answer that changed nothing says little beside it.
    """
    state: list[Line] = []
    rounds: list[tuple[int, int, Line]] = []
    says = [at for at, one in enumerate(found) if not one.published and claims(one.paragraphs, SHARES[0])]
    sections = [*map(_section_of, found)]
    if not any(one.worked for one in found):  # the work was done by commands, if any was
        found = [one._replace(worked=True) for one in found]
    newest = next((at for at in says if found[at].worked), says[0] if says else 0)
    bare = bool(found) and len(found[newest].item["content"].split()) < BARE_WORDS
    room = SHARES[0]
    # In a short conversation each account has more room.
    most = max(SHARES[1], EARLIER_CHARS // max(1, sum(one.worked for one in found)))
    answered = [at for at in says if sections[at] == "answers"][:MOST_ANSWERS]
    for at, account in enumerate(found):
        opening = [] if at or account.published else _opening(account)
        if sections[at] == "answers" and at not in answered and not opening:
            continue
        lasts = account.worked and account.steps < MOST_STEPS
        recent = lasts and (not account.published or (bare and at == newest + 1))
        said: list[str] = []
        if at == newest or (at < newest and account.published) or (recent and room > SHARES[0] // 2):
            # How an earlier one was checked was the state then.
            said = (changes if at > newest else claims)(_of_now(account), room if at else SHARES[0])
            said = [*_address(account, said), *_unsaid(opening, said), *said]
            room -= sum(map(len, said)) if at >= newest else 0
        elif at < min(newest, 2):
            said = claims(account.paragraphs, max(SHARES[2], most // 2))
            said = [*_unsaid(opening, said), *said]
        elif account.published:
            # What else it says is repeated by the account after it, or out of date.
            if lasts and at == newest + 1 and not ISSUE.match(account.item["content"]):
                said = _address(account, (line.text for line in state))
        elif lasts:
            chosen = changes(account.paragraphs, most)
            by_value = sorted(chosen, key=rate_change, reverse=True)
            rounds += [(by_value.index(text), at, _line("results", text, account)) for text in chosen]
        state += [_line(sections[at], text, account) for text in said]
        left = [] if account.published or at < newest else left_open(account.paragraphs)
        if at == newest:
            state += [_line(sections[at], text, account) for text in left]
        else:
            rounds += [(-1, at, _line("results", text, account)) for text in left]
    return {
        **{
            name: [line for line in state if line.section == name]
            for name in ("state", "published", "answers")
        },
        "results": [line for *_, line in sorted(rounds, key=lambda each: each[:2])],
        "reasons": sorted(on_the_way, key=lambda line: not introduces(line.text)),
    }


def _section_of(account: Account) -> str:
    if account.published:  # what was wrong before a commit is part of its message
        return "published"
    return "state" if account.worked or account.ran or reports_work(account.paragraphs) else "answers"


def _address(account: Account, said: Iterable[str]) -> list[str]:
    """Return the address of a pull request, unless `said` names it; commits are listed with the work tree."""
    title = account.paragraphs[0].text if account.published else ""
    link = _COMMIT_NAME.match(title)
    if not (link and link[3]):
        return []
    named = re.compile(
        rf"\b(?:PR|pull request|MR|issue)s?\W{{0,3}}{link[3]}\b|/(?:pull|issues)/{link[3]}\b",
        re.IGNORECASE,
    )
    return [] if any(map(named.search, said)) else [title]


def _opening(account: Account) -> list[str]:
    """Return the first sentences of a final report, which often are its answer and name nothing ("No, it is not enough")."""
    first = next((one for one in account.paragraphs[:1] if not one.entry and not proposes(one)), None)
    if first is None or not _is_report(account.item) or first not in _of_now(account):
        return []
    text = ""
    for sentence in dropwhile(_ACKNOWLEDGES.fullmatch, sentences(without_emphasis(first.text))):
        # "No duplication. There are two functions:" denies less than its start.
        denied = len(text.split()) < NAMELESS_WORDS and _DENIES.match(text)
        ends = sentence.endswith("?" if denied else ("?", ":"))
        if ends or _is_ahead_of(sentence) or len(text) + len(sentence) >= LINE_CHARS:
            break
        text = f"{text} {sentence}".lstrip()
    named = len(text.split()) >= NAMELESS_WORDS or _DENIES.match(text)
    leans = len(text.split()) <= OPENING_WORDS and _LEANS.match(text)
    return [text] if named and not leans else []


def _is_ahead_of(sentence: str) -> bool:
    """Return whether a sentence at the start of a report announces, proposes or leads to something, and answers nothing."""
    if announces(sentence) or leads_in(sentence) or goes_on(sentence.rstrip(":")) or names_step(sentence):
        return True
    return supposes(sentence) and not _ANSWERS.match(sentence)


def _unsaid(texts: Iterable[str], said: Collection[str]) -> list[str]:
    """Return those of `texts` that no line of `said` holds."""
    return [text for text in texts if not any(text in line for line in said)]


def _of_now(account: Account) -> list[Paragraph]:
    """Return the paragraphs of an account, without what was wrong before the work that it is about."""
    return [one for one in account.paragraphs if not (account.worked and was_wrong(one))]


def reasons(items: Sequence[Item]) -> Iterator[Line]:
    """Yield the reasons that an agent gave on the way for edits that followed, the newest first.

    `items` are those of one conversation. Only a sentence that chooses is one ("both should go through the log"): an edit
    that followed it shows that it was carried out. Those of older turns are left out, and of edits that were undone. While
    there is no report on the newest request, those that say what is made are among them.
    """
    undone = undone_in(items)
    reported = not under_way(items)
    turns = edits = 0
    for item in items:
        if item["metadata"].get("role") == "request":
            reported, turns, edits = True, turns + bool(edits), 0
            if turns == REASON_TURNS:
                return
        edits += item["type"] == "code_change"
        if item["metadata"].get("role") != "change" or item["metadata"]["caste"] or item.get("id") in undone:
            continue
        text = reason_of(item["content"])
        # What is wrong is no result: the edit that followed changed it.
        if not (text and says_why(text) and not names_defect(text)):
            text = "" if reported else change_of(item["content"])
        if text and not is_aside(text):
            yield Line(
                "reasons", text, item["metadata"]["timestamp"], "", (str(item.get("id", "")),), "agent"
            )


def work_tree(items: Sequence[Item]) -> Iterator[Line]:
    """Yield what is uncommitted, unpushed or unchecked, as the calls of one conversation show it."""
    for item in [one for one in items if one["metadata"].get("role") == "tree"][:1]:
        yield Line(
            "commands",
            item["content"],
            item["metadata"]["timestamp"],
            "",
            (str(item.get("id", "")),),
            "machine",
        )


def next_steps(found: Sequence[Account], items: Sequence[Item]) -> Iterator[Line]:
    """Yield the next steps: the last account's question with its options, its announcements, then the open tasks."""
    said = [one for one in found if not one.published]
    # What a turn that was cut off announced before its last command, it has done or tried.
    if said and said[0].item["metadata"].get("fate") == CUT:
        after = takewhile(lambda item: item is not said[0].item, items)
        said = said[1:] if any(item["type"] in RUNS for item in after) else said
    yield from _asked(said)
    if said:
        yield from _next_of(said[0], items)
    yield from _never_run(found, items)
    yield from _tasks(found, items)


def _tasks(found: Sequence[Account], items: Sequence[Item]) -> Iterator[Line]:
    """Yield the open tasks of the newest plan, unless a commit is newer: then it was left behind."""
    plan = next((one for one in items if _is_plan(one)), None)
    at = plan["metadata"]["timestamp"] if plan else ""
    if plan is None or any(one.published and one.at > at for one in found):
        return
    since = (one for one in items if one["type"] in _PASSED and one["metadata"]["timestamp"] > at)
    passed = {name for ran in since for name in _CHECKS.findall(_names_of(ran["content"]))}
    current, others = open_tasks(plan["content"])
    # After a report it is more often done and not ticked off.
    note = IN_PROGRESS if under_way(items) else ""
    marked = [*((text, note) for text in current), *((text, "") for text in others)]
    left = ((text, note) for text, note in marked if not _is_fulfilled(text, passed))
    for text, mark in islice(left, MOST_TASKS):
        yield Line("next", whole(text) or text[:LINE_CHARS], at, mark, (str(plan.get("id", "")),), "machine")


def _is_plan(item: Item) -> bool:
    metadata = item["metadata"]
    return metadata.get("role") == "plan" and item["type"] == "observation" and not metadata["caste"]


def _next_of(last: Account, items: Iterable[Item]) -> Iterator[Line]:
    """Yield what the `last` account says that comes next, with a note if an edit or a request followed it."""
    since = takewhile(lambda item: item is not last.item, items)
    note = BEGUN if any(item["type"] == "code_change" for item in since) else _later_requests(last)
    said = filter(None, _announced(last, _closing(last)))
    yield from (_line("next", text, last)._replace(note=note) for text in islice(said, MOST_TASKS))


def _is_fulfilled(task: str, passed: AbstractSet[str]) -> bool:
    """Return whether a `task` is only to run checks, which all are of the kinds that `passed` since."""
    return bool(_ONLY_CHECKS.match(task)) and passed >= {*_CHECKS.findall(task.casefold())}


def _names_of(run: str) -> str:
    """Return the names of the commands that an entry says were run."""
    from aether.messages.shell import command_signature, parts_of

    ran = _SPAN.search(run)
    return " ".join(command_signature(part.text) for part in parts_of(ran[1])) if ran else ""


def _never_run(found: Sequence[Account], items: Sequence[Item]) -> Iterator[Line]:
    """Yield the newest next step of an earlier account that names a command, if no such command ran since."""
    from aether.messages.shell import command_signature, is_notable

    for account in found[1:]:
        for one in account.paragraphs:
            spans = _SPAN.findall(one.text) if is_ahead(one) and not asks(one) else []
            named = [command_signature(span) for span in spans if " " in span and is_notable(span)]
            since = (item for item in items if item["metadata"]["timestamp"] >= account.at)
            ran = [item["content"] for item in since if item["type"] in RUNS] if named else []
            if named and not any(named[0] in each for each in ran):
                if text := whole(one.text):
                    yield _line("next", text, account)
                return


def _asked(found: Sequence[Account]) -> Iterator[Line]:
    """Yield what the person is asked: by the newest account, or by the one before if that only asks whether it was clear."""
    for account in found[:2]:
        if account.reply and (account is found[0] or not asks_back(account.reply)):
            return
        if asked := [*filter(None, _question(account))]:
            yield from (_line("next", text, account) for text in dict.fromkeys(asked))
            return
        if account.worked or not any(checks_in(question_of(one, alone=True)) for one in _closing(account)):
            return


def _question(account: Account) -> Iterator[str]:
    """Yield the question at the end of an account, after what it refers to, or the choices that it offers."""
    said = account.paragraphs
    if any(map(is_offer, said[-2:])):
        yield from (whole(one.text) for one in blocks(said) if is_offer(one))
        return
    for one in _closing(account):
        question, alone = question_of(one), question_of(one, alone=True)
        if checks_in(alone):
            yield from recommended(said)[-1:]
            return
        if refers(one.text):
            before = said[: said.index(one)]
            supposed = [each for each in before[-3:] if supposes(each.text) and not asks(each)][-1:]
            # "Shall I do these?" One entry of a longer list, or a row of a table, would not be all of them.
            listed = [each for each in blocks(before)[-1:] if each.lead and each.text.startswith(each.lead)]
            yield from (whole(each.text) for each in listed or supposed)
        yield question
        numbered = picks(alone)
        if numbered:
            yield from (whole(each.text) for each in said if is_option(each))
        lines = account.item["content"].split("\n")
        heads = (line.strip("#* \t").replace("**", "") for line in lines if HEADING.fullmatch(line))
        # Numbers at headings are those of parts, unless it asks for one.
        yield from (
            text
            for text in heads
            if OPTION.match(text) and not text.endswith(":") and (numbered or not text[:1].isdigit())
        )


def _closing(account: Account) -> list[Paragraph]:
    """Return the paragraph at the end of an account that asks something, else the first one if it asks for leave."""
    said = account.paragraphs
    return [*filter(asks_leave, said[:1]), *filter(asks, said[-2:])][-1:]


def _announced(last: Account, closing: Collection[Paragraph]) -> Iterator[str]:
    """Yield what an account says that comes next, beside what it asks."""
    said = blocks(last.paragraphs)
    for at, one in enumerate(said):
        if one in closing or is_offer(one) or asks(one):
            continue
        # "Let me show both" is what the rest of the account does.
        fulfilled = announces(one.text) and at < len(said) - LAST_PARAGRAPHS
        yield whole(one.text) if is_ahead(one) and not fulfilled else step_of(one)


def from_summary(found: Sequence[Account], items: Sequence[Item], *roles: str) -> Iterator[Line]:
    """Yield the parts of the host's own summary with one of `roles`, unless an account is newer than the summary."""
    since = max((account.at for account in found), default="")
    for item in items:
        at = item["metadata"]["timestamp"]
        if item["metadata"].get("role") not in roles or at <= since:
            continue
        for one in paragraphs(item["content"])[:MOST_TASKS]:
            if text := whole(one.text):
                section = "state" if item["metadata"].get("role") == "current" else "next"
                yield Line(section, text, at, "", (str(item.get("id", "")),), "agent")


def open_tasks(plan: str) -> tuple[list[str], list[str]]:
    r"""Return the tasks of a plan that are in progress, and those that are not started.

    >>> open_tasks("[completed] write it\n[pending] push it\n[in_progress] test it")
    (['test it'], ['push it'])
    """
    found = [line[1:].partition("] ")[::2] for line in plan.split("\n") if line.startswith("[")]
    current = [text for how, text in found if how == "in_progress"]
    return current, [text for how, text in found if how in ("pending", "open", "todo")]


def _published(content: str) -> tuple[Paragraph, ...]:
    """Return the name of a commit or pull request with its subject, and the paragraphs of its text."""
    named, _, said = content.partition("\n\n")
    subject, _, body = said.partition("\n")
    commit = _COMMIT_NAME.match(named)
    shown = f"{(commit and commit[1]) or named} {subject.strip()}"
    # An issue says what is to be done, not what was.
    return Paragraph(shown, ""), *([] if ISSUE.match(named) else paragraphs(body))


def of_conversation(items: Iterable[Item], session: str = "", *, only: bool = False) -> list[Item]:
    """Return the items of the conversation `session`, or of the newest one that says where its work is, in their order.

    With `only`, those of no other conversation than a `session` that is named.
    """
    held = list(items)
    known = session if any(item["metadata"].get("conversation") == session for item in held) else ""
    if not known:
        if only and session:
            return []
        if len({item["metadata"].get("conversation", "") for item in held}) == 1:
            return held
        newest = next(filter(says_state, held), None) or next(filter(is_of_work, held), None)
        if newest is None:
            return held
        known = str(newest["metadata"].get("conversation", ""))
    return [item for item in held if item["metadata"].get("conversation", "") == known]


def later(items: Iterable[Item], own: Sequence[Item]) -> list[Item]:
    """Return those of `items` that other conversations than that of `own` brought after it, in their order."""
    known = {item["metadata"].get("conversation", "") for item in own}
    since = max((item["metadata"]["timestamp"] for item in own), default="")
    return [
        item
        for item in items
        if item["metadata"]["timestamp"] > since and item["metadata"].get("conversation", "") not in known
    ]


def is_of_work(item: Item) -> bool:
    """Return whether an item is an account, or what a host's summary says of the work in progress."""
    return item["metadata"].get("role") in ("answer", "current") or item["type"] == "outcome"


def says_state(item: Item) -> bool:
    """Return whether an item says where some work is, rather than only answering a question."""
    return is_of_work(item) and bool(claims(paragraphs(item["content"], tables=True), SHARES[0]))


def _later_requests(account: Account) -> str:
    """Return the note of an account after which the person asked for more, "" for another."""
    number, later = (f"{account.asked} ", "requests") if account.asked > 1 else ("", "request")
    return f"before the last {number}{later}" if account.asked else ""


def _line(section: str, text: str, account: Account) -> Line:
    return Line(
        section,
        text,
        account.at,
        _later_requests(account) if section == "state" else "",  # the work went on since
        (account.item["id"],),
        "machine" if account.published else "agent",
    )
