"""Laws of claims: whatever agents and clocks do, no acknowledged claim is held by two of them, and a dead one blocks nobody."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from aether.errors import AetherError
from aether.memory import teamwork
from aether.schemas import check
from aether.store import documents
from aether.store.merge import merge, rules_of
from aether.store.patch import apply
from tests.effort import examples
from tests.homes import NOW

AGENTS = ("a", "b", "c")
RESOURCES = ("./src", "./SRC/x.py", "./src/y.py", ".", "task:docs", "./srcs")
TTL = 10.0


class Act(NamedTuple):
    """One call, after `elapsed` seconds in which the clock was also set by `jump`."""

    name: str
    agent: str
    resource: str
    ttl: float
    elapsed: float
    jump: float


def acts(jumps: st.SearchStrategy[float]) -> st.SearchStrategy[list[Act]]:
    act = st.builds(
        Act,
        name=st.sampled_from(["claim", "claim", "claim", "release"]), agent=st.sampled_from(AGENTS),
        resource=st.sampled_from(RESOURCES), ttl=st.sampled_from([1.0, 5.0, TTL]),
        elapsed=st.sampled_from([0.0, 0.5, 1.0, 4.0, 9.0]), jump=jumps,
    )  # fmt: skip
    return st.lists(act, max_size=25)


class Colony:
    """A document with the calls of agents on it, in true time and by a clock that is set forward and back."""

    def __init__(self) -> None:
        self.document: Any = documents.default("teamwork")
        self.time = self.set_by = 0.0
        self.revision = 0
        self.acknowledged: dict[tuple[str, str], tuple[float, int]] = {}
        """The end in true time, and the number, of each claim that was acknowledged to an agent."""

    @property
    def now(self):
        return NOW + timedelta(seconds=self.time + self.set_by)

    def do(self, act: Act) -> bool:
        """Do one call and return whether a claim was granted."""
        self.time, self.set_by = self.time + act.elapsed, self.set_by + act.jump
        self.revision += 1
        try:
            if act.name == "claim":
                change = teamwork.claim(
                    self.document, act.resource, by=act.agent, ttl_seconds=act.ttl, now=self.now, revision=self.revision
                )  # fmt: skip
            else:
                change = teamwork.release(self.document, act.resource, by=act.agent, now=self.now)
        except AetherError:
            return False
        self.document = apply(self.document, change.patches["teamwork"])
        assert check.findings("teamwork", self.document) == []
        if act.name == "release":
            self.acknowledged = {
                (agent, resource): kept for (agent, resource), kept in self.acknowledged.items()
                if agent != act.agent or resource.casefold() != act.resource.casefold()
            }  # fmt: skip
        elif change.result["by"] == act.agent:
            self.acknowledged[act.agent, act.resource] = self.time + act.ttl, change.result["revision"]
            return True
        return False

    def others(self, act: Act) -> list[tuple[float, int]]:
        """Return what was acknowledged to other agents about resources that overlap that of `act`."""
        return [
            granted for (agent, resource), granted in self.acknowledged.items()
            if agent != act.agent and teamwork.overlap(resource, act.resource)
        ]  # fmt: skip


@given(acts(st.sampled_from([0.0, 0.0, -1.0, -7.0, -1000.0])))
def test_no_claim_is_granted_before_those_of_others_were_released_or_are_over(calls):
    """A clock that runs on, or is set back, ends no claim early."""
    colony = Colony()
    for act in calls:
        if colony.do(act):
            assert [end for end, _ in colony.others(act) if end > colony.time] == []


@given(acts(st.sampled_from([0.0, 3.0, -3.0, 1e6, -1e6])))
def test_by_any_clock_one_agent_holds_a_resource_and_a_later_holder_has_a_greater_number(calls):
    colony = Colony()
    for act in calls:
        granted = colony.do(act)
        live = teamwork.live_claims(colony.document, now=colony.now)
        pairs = [(one, other) for one in live for other in live if one["by"] != other["by"]]
        assert [pair for pair in pairs if teamwork.overlap(pair[0]["id"], pair[1]["id"])] == []
        if granted:
            number = colony.acknowledged[act.agent, act.resource][1]
            assert all(number > before for _, before in colony.others(act))


@given(acts(st.sampled_from([0.0, 3.0, -3.0, 1e6, -1e6])), st.sampled_from(RESOURCES))
def test_once_someone_asked_a_dead_agent_blocks_others_for_twice_its_time_at_most(calls, resource):
    colony = Colony()
    for act in calls:
        colony.do(act)

    colony.do(Act("claim", "d", resource, TTL, 0.0, 0.0))

    assert colony.do(Act("claim", "d", resource, TTL, 2 * TTL, 0.0))


@examples(150)
@given(acts(st.just(0.0)), st.integers(0, 30), acts(st.just(0.0)))
def test_undoing_any_change_lets_nobody_hold_what_another_holds(calls, nth, later):
    """An undo merges the state before the change into that of now, as `aether undo` does."""
    colony, states = Colony(), [documents.default("teamwork")]
    for act in calls:
        colony.do(act)
        states.append(colony.document)
    place = nth % len(calls) if calls else 0
    rules = rules_of(check.schema("teamwork"))
    if calls:
        colony.document, _ = merge(states[place + 1], colony.document, states[place], rules)
    present = teamwork.live_claims(colony.document, now=colony.now)
    colony.acknowledged = {
        (claim["by"], claim["id"]): (colony.time, claim["revision"]) for claim in present
    }  # what came back is not over
    for act in later:
        granted = colony.do(act)
        live = teamwork.live_claims(colony.document, now=colony.now)
        assert not granted or [claim for claim in live if claim["by"] == act.agent]
        assert [
            (one, other) for one in live for other in live
            if one["by"] != other["by"] and teamwork.overlap(one["id"], other["id"])
        ] == []  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.sampled_from(AGENTS), st.sampled_from([*RESOURCES, "/", "/a/b", "https://x/y", "./src/y.py/z"])
        ),
        max_size=12,
    )
)
def test_of_claims_that_overlap_the_later_one_counts(granted):
    claims = [
        {"id": resource, "by": agent, "task": "", "since": "", "renewed_at": "", "ends_at": "9", "ttl_seconds": 1.0, "revision": nth}
        for nth, (agent, resource) in enumerate(granted)
    ]  # fmt: skip
    expected = []
    for claim in claims[::-1]:
        others = [later for later in expected if later["by"] != claim["by"]]
        if not any(teamwork.overlap(later["id"], claim["id"]) for later in others):
            expected.append(claim)

    assert teamwork.live_claims({"claims": claims}, now=NOW) == expected[::-1]
