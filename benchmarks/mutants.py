"""What share of small faults do the tests find, all of them and those of the default tier?

Twenty mutants of each of five packages are sampled by a hash of their statement, so that code which only moved
gives the same mutants. All of them are put into one copy of the tree, each behind a switch that is chosen
by the environment and that records which test reached it. Each tier runs once to record that (`reach`); then
each mutant meets the tests that reached it, the fastest first (`kill`). Only code in function bodies is
mutated: what runs at import is reached by every test.

A test that fails, is skipped or errs without a mutant is left out. A kill counts when the same test passes
without the mutant. Tests beyond the caps of a mutant are left out by a seeded choice; such mutants are listed.
With `--work`, a second call goes on where the first one ended.

Usage: python benchmarks/mutants.py before|after [options]; see --help
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import hashlib
import json
import os
import random
import re
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("store", "memory", "compaction", "messages", "redact")
SEED = "aether mutants 1"
# Caps of one mutant and tier, in machine time: beyond them a seeded choice of its tests is run.
MOST_TESTS = 1000
MOST_SECONDS = 60.0
# A mutant may make a loop endless: it is stopped by the clock, or by the memory that it takes.
SPARE_SECONDS = 90.0
MEMORY_BYTES = 6 * 2**30
# These read the source or start a tree of their own; no mutant can change what they find.
LEFT_OUT = ("tests/test_architecture.py", "tests/e2e")
LAST = ("crash", "soak")

COMPARISONS = {
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
# The methods whose first argument is compared with something, so that another string is another behaviour.
COMPARING = {"get", "pop", "startswith", "endswith", "removeprefix", "removesuffix", "split", "partition"}

SWITCH = '''
"""Says which mutant is active, and records which test reached which mutant."""

import os

active = int(os.environ.get("MUTANT_ACTIVE") or 0)
directory = os.environ.get("MUTANT_REACH")
test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
seen = set()
# The process of the tests collects what was reached; any other process writes it at once, since it may be killed.
direct = True
# Tests that let system calls fail replace these names in os.
_open, _write, _close, _pid = os.open, os.write, os.close, os.getpid


def at(number):
    if directory and number not in seen:
        seen.add(number)
        if direct:
            path = f"{directory}/process-{_pid()}.txt"
            handle = _open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            _write(handle, f"{number}\\t{test}\\n".encode())
            _close(handle)
    return number == active


def _forked():
    global direct
    direct = True


os.register_at_fork(after_in_child=_forked)
'''


class Mutant(NamedTuple):
    key: str
    package: str
    path: str
    line: int
    statement: str
    operator: str
    variant: int
    node: ast.AST


# -- Which mutants there are ----------------------------------------------------------------------


def sample(modules: dict[str, ast.Module], package: str, most: int) -> list[Mutant]:
    """Return `most` mutants of the modules of a package, given by path: those with the lowest keys."""
    found, met = [], Counter()
    for path, module in modules.items():
        for line, statement, operator, index, variant, node in candidates(module):
            words = f"{SEED}\0{statement}\0{operator}\0{index}\0{variant}"
            met[words] += 1
            digest = hashlib.sha256(f"{words}\0{met[words]}".encode()).hexdigest()[:16]
            found.append(
                Mutant(f"{package}-{digest}", package, path, line, statement, operator, variant, node)
            )
    assert len(found) > 10 * most, f"{package}: only {len(found)} candidates"
    return sorted(found, key=lambda mutant: mutant.key)[:most]


def candidates(module: ast.Module):
    """Yield line, statement, operator, index in the statement, variant and node of each possible mutant."""
    for function in functions(module):
        for statement in statements(function.body):
            written, counts = header(statement), Counter()
            for node, operators in places(statement):
                for operator, variants in operators:
                    counts[operator] += 1
                    for variant in range(variants):
                        yield node.lineno, written, operator, counts[operator], variant, node


def functions(tree: ast.AST):
    """Yield the functions and methods of a module, not those inside of functions."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node)


def statements(body: list[ast.stmt]):
    """Yield each statement under `body`, those inside of nested functions too."""
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from statements(getattr(statement, name, []))
        for part in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
            yield from statements(part.body)


def header(statement: ast.stmt) -> str:
    """Return the source of a statement, of a compound one without the statements inside of it."""
    bare = copy.copy(statement)
    for name, empty in (("body", [ast.Pass()]), ("orelse", []), ("finalbody", [])):
        if hasattr(bare, name):
            setattr(bare, name, empty)
    if isinstance(bare, ast.Match):
        return f"match {ast.unparse(bare.subject)}: " + "; ".join(ast.unparse(c.pattern) for c in bare.cases)
    if isinstance(bare, ast.Try | ast.TryStar):
        return "try"
    return ast.unparse(bare)


def places(statement: ast.stmt):
    """Yield the nodes of one statement that can be mutated, each with its operators and their variants."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Raise() | ast.Assert():
            return
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield statement, [("return None", 1)]
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield statement, [("drop statement", 1)]
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield statement, [("drop statement", 1)]
        case ast.If() if not _binds(statement.test):
            yield statement, [("condition", 2)]
    for expression in expressions(statement):
        yield from expression_places(expression)


def expressions(statement: ast.stmt):
    """Yield the expressions of a statement that are evaluated, not its targets, annotations and patterns."""
    if isinstance(statement, ast.Match):
        yield statement.subject
        yield from (case.guard for case in statement.cases if case.guard)
        return
    for name in ("test", "iter", "value", "subject"):
        value = getattr(statement, name, None)
        if isinstance(value, ast.expr):
            yield value
    yield from (item.context_expr for item in getattr(statement, "items", []))


def expression_places(node: ast.AST, *, compared: bool = False):
    if isinstance(node, ast.JoinedStr):
        return
    operators = list(of_expression(node, compared=compared))
    if operators:
        yield node, operators
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.arguments):
            yield from expression_places(child, compared=is_compared(node, child, inherited=compared))


def is_compared(node: ast.AST, child: ast.AST, *, inherited: bool) -> bool:
    """Return whether a string that is `child` of `node` is compared with something."""
    match node:
        case ast.Compare():
            return True
        case ast.Subscript():
            return child is node.slice
        case ast.Call(func=ast.Attribute(attr=attr)) if attr in COMPARING:
            return child in node.args[:1]
        case ast.Tuple() | ast.Set() | ast.List():
            return inherited
    return False


def of_expression(node: ast.AST, *, compared: bool):
    """Yield operator and number of variants for an expression."""
    match node:
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                yield f"compare {place}", len(COMPARISONS[type(op)])
        case ast.BoolOp():
            yield "and/or", 1
        case ast.UnaryOp(op=ast.Not()):
            yield "drop not", 1
        case ast.BinOp(op=op, left=left, right=right) if type(op) in ARITHMETIC:
            if not (_is_text(left) or _is_text(right)):
                yield "arithmetic", 1
        case ast.Constant(value=bool()):
            yield "flip", 1
        case ast.Constant(value=int() | float()):
            yield "number", 2
        case ast.Constant(value=str()) if compared:
            yield "string", 1


def _binds(node: ast.expr) -> bool:
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


# -- How they are put into the tree ---------------------------------------------------------------


class Switches(ast.NodeTransformer):
    """Puts mutants, listed by the id of their node, behind their switches."""

    def __init__(self, chosen: dict[int, list[tuple[int, Mutant]]]) -> None:
        self.chosen = chosen

    def visit(self, node: ast.AST) -> ast.AST:
        mutants = self.chosen.get(id(node), [])
        node = plain = self.generic_visit(node)
        for number, mutant in mutants:
            active = ast.Call(ast.Name("_mutant_at"), [ast.Constant(number)], [])
            node = switched(node, plain, active, mutant)
        return node


def switched(node: ast.AST, plain: ast.AST, active: ast.expr, mutant: Mutant) -> ast.AST:
    """Return `node` with a mutant of `plain` in its place while `active` is true."""
    if isinstance(node, ast.If):
        node.test = ast.IfExp(active, ast.Constant(not mutant.variant), node.test)
        return node
    if isinstance(node, ast.Return):
        node.value = ast.IfExp(active, ast.Constant(None), node.value)
        return node
    if isinstance(node, ast.stmt):
        return ast.If(ast.UnaryOp(ast.Not(), active), [node], [])
    return ast.IfExp(active, mutated(copy.deepcopy(plain), mutant), node)


def mutated(node: ast.AST, mutant: Mutant) -> ast.AST:
    """Change an expression as its mutant says."""
    match node:
        case ast.Compare(ops=ops):
            place = int(mutant.operator.removeprefix("compare "))
            ops[place] = COMPARISONS[type(ops[place])][mutant.variant]()
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.UnaryOp():
            return node.operand
        case ast.BinOp():
            node.op = ARITHMETIC[type(node.op)]()
        case ast.Constant(value=bool()):
            node.value = not node.value
        case ast.Constant(value=str()):
            node.value = f"XX{node.value}"
        case ast.Constant():
            node.value += (1, -1)[mutant.variant]
    return node


def prepare(tree: Path, work: Path, per_package: int) -> list[Mutant]:
    """Copy `tree` into `work` with the sampled mutants in it, and return these."""
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(tree, work / "tree", ignore=ignored, symlinks=True)
    if (tree.parent / "shared").exists() and not (work / "shared").exists():
        (work / "shared").symlink_to((tree.parent / "shared").resolve())
    (work / "plugin").mkdir()
    shutil.copy(__file__, work / "plugin" / "mutant_plugin.py")
    # Beside the package, since some tests start processes that find nothing but the checkout.
    (work / "tree" / "mutant_switch.py").write_text(SWITCH, encoding="utf-8")

    mutants, modules = [], {}
    for package in PACKAGES:
        paths = sorted((tree / "aether" / package).rglob("*.py"))
        parsed = {str(path.relative_to(tree)): ast.parse(path.read_text("utf-8")) for path in paths}
        mutants += sample(parsed, package, per_package)
        modules |= parsed
    for path in sorted({mutant.path for mutant in mutants}):
        chosen: dict[int, list[tuple[int, Mutant]]] = {}
        for number, mutant in enumerate(mutants, 1):
            if mutant.path == path:
                chosen.setdefault(id(mutant.node), []).append((number, mutant))
        rewrite(work / "tree" / path, modules[path], chosen)
    return mutants


def rewrite(path: Path, module: ast.Module, chosen: dict[int, list[tuple[int, Mutant]]]) -> None:
    """Write `module` with its mutants to `path`, the import of the switch after those from `__future__`."""
    module = Switches(chosen).visit(module)
    first = next(
        place
        for place, node in enumerate(module.body)
        if not (isinstance(node, ast.Expr) or getattr(node, "module", None) == "__future__")
    )
    module.body.insert(first, ast.ImportFrom("mutant_switch", [ast.alias("at", "_mutant_at")], 0))
    text = ast.unparse(ast.fix_missing_locations(module))
    for mutants in chosen.values():
        for number, mutant in mutants:
            assert f"_mutant_at({number})" in text, mutant
    compile(text, path, "exec")
    path.write_text(text, encoding="utf-8")


# -- In the process of the tests: this file is a plugin of pytest too ------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """Log the outcome of a test, its seconds and the mutants it reached."""
    import mutant_switch

    mutant_switch.direct = False
    mutant_switch.test = item.nodeid
    mutant_switch.seen.clear()
    item.outcomes = []
    started = used_seconds()
    result = yield
    if directory := os.environ.get("MUTANT_REACH"):
        line = {
            "test": item.nodeid,
            "seconds": round(used_seconds() - started, 3),
            "passed": item.outcomes == ["passed"] * 3,
            "failed": "failed" in item.outcomes,
            "reached": sorted(mutant_switch.seen),
        }
        append(Path(directory, f"tests-{os.getpid()}.jsonl"), line)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    report = yield
    item.outcomes.append(report.outcome)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run a plan, if there is one: each mutant in forks of this process, which has collected the tests once."""
    if "MUTANT_PLAN" not in os.environ:
        return None
    plan = json.loads(Path(os.environ["MUTANT_PLAN"]).read_text("utf-8"))
    items = {item.nodeid: item for item in session.items}
    for row in plan["mutants"]:
        started = used_seconds()
        if started > plan["seconds"]:
            break
        killed = kill(row["number"], [items[test] for test in row["tests"] if test in items], row["expected"])
        row |= {"killed_by": plan["tier"] if killed else None, **(killed or {})}
        row["seconds"] = round(used_seconds() - started, 1)
        append(Path(plan["log"]), row)
    return True


def kill(number: int, items: list[pytest.Item], expected: float) -> dict[str, str] | None:
    """Return the first test that finds a mutant, and how."""
    while items and (failure := first_failure(number, items, expected)):
        place, how = failure
        test, items = items[place], items[place + 1 :]
        # A test that fails in a process of its own without the mutant as well says nothing about it.
        if not first_failure(0, [test], expected):
            return {"test": test.nodeid, "how": how}
    return None


def first_failure(number: int, items: list[pytest.Item], expected: float) -> tuple[int, str] | None:
    """Run tests with a mutant (0: without one) in a fork; return the place of the first that fails, and how."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        child = os.fork()
        if not child:
            run_in_fork(number, items, writing, directory)
        os.close(writing)
        done, until, ended = b"", time.monotonic() + SPARE_SECONDS + 10 * expected, False
        while b"F" not in done and len(done) < len(items) and not ended and time.monotonic() < until:
            # A process that the tests left behind may hold the pipe open: the end of the fork counts too.
            ended = os.waitpid(child, os.WNOHANG) != (0, 0)
            if select.select([reading], [], [], 0 if ended else 0.2)[0]:
                done += os.read(reading, 65536)
        for group_or_process in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError):
                group_or_process(child, signal.SIGKILL)
        if not ended:
            os.waitpid(child, 0)
        os.close(reading)
    passed = done.count(b".")
    if passed == len(items):
        return None
    return passed, "failed" if b"F" in done else "exit" if ended else "timeout"


def run_in_fork(number: int, items: list[pytest.Item], writing: int, directory: str) -> NoReturn:
    """Run tests one after the other, write a dot for each that passes and an F for the first that fails."""
    import mutant_switch
    from hypothesis.internal.conjecture import engine

    try:
        os.setsid()
        mutant_switch.active = number
        engine.MAX_SHRINKING_SECONDS = 1  # that a law fails is enough
        os.environ |= {"MUTANT_ACTIVE": str(number), "TMPDIR": directory, "PYTEST_DEBUG_TEMPROOT": directory}
        tempfile.tempdir = None
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            passed = item.outcomes == ["passed"] * 3
            os.write(writing, b"." if passed else b"F")
            if not passed:
                break
    finally:
        os._exit(0)


# -- Running the tests ----------------------------------------------------------------------------


class Tier(NamedTuple):
    name: str
    marks: str
    options: list[str]
    environment: dict[str, str]

    @property
    def differs(self) -> bool:
        return bool(self.options or self.environment)


def tier(name: str, marks: str, written: str) -> Tier:
    """Return a tier whose options are written as on a command line, NAME=VALUE of its environment among them."""
    words = shlex.split(written)
    environment = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    return Tier(name, marks, [word for word in words if not re.match(r"[A-Z_]+=", word)], environment)


def run_tests(work: Path, tier: Tier, words: list[str], log: Path, **variables: str) -> int:
    """Run pytest in the mutated tree, and return its exit code."""
    (log / "tmp").mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MUTANT_")},
        **tier.environment,
        **variables,
        "PYTHONPATH": f"{work / 'tree'}{os.pathsep}{work / 'plugin'}",
        "TMPDIR": str(log / "tmp"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(log / "hypothesis"),
    }
    options = "-q -p mutant_plugin -p no:randomly -p no:cacheprovider --hypothesis-seed=0".split()
    command = [sys.executable, "-m", "pytest", *options, *tier.options, *words]
    with (work / "output.txt").open("ab") as output:
        return subprocess.run(
            command, cwd=work / "tree", env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, check=False,
        ).returncode  # fmt: skip


def reach(work: Path, tiers: list[Tier], places: list[str], seconds: float) -> dict:
    """Return which tests passed and which mutants they reached; runs the places that were not run before."""
    kept = work / "reach.json"
    found = {"tests": {}, "reached": {}, "failed": [], "done": [], "left": [], "seconds": 0.0}
    found |= json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    found["left"] = []
    for each in tiers:
        for place in places:
            if [each.name, place] in found["done"]:
                continue
            if found["seconds"] > seconds:
                found["left"].append([each.name, place])
                continue
            started = used_seconds()
            with tempfile.TemporaryDirectory(dir=work, ignore_cleanup_errors=True) as log:
                code = run_tests(work, each, ["-m", each.marks, place], Path(log), MUTANT_REACH=log)
                assert code in (0, 1, 5), f"pytest ended with {code} in {place}; see {work}/output.txt"
                collect(Path(log), each, found)
            found["seconds"] += used_seconds() - started
            found["done"].append([each.name, place])
            kept.write_text(json.dumps(found), encoding="utf-8")
            print(
                f"{each.name} {place}: {len(found['tests'])} tests, {found['seconds']:.0f} s", file=sys.stderr
            )
    return found


def collect(log: Path, tier: Tier, found: dict) -> None:
    """Add what one run logged to what was found before."""
    reached = []
    for path in log.glob("tests-*.jsonl"):
        for line in read_rows(path):
            if line["passed"]:
                found["tests"][line["test"]] = {"tier": tier.name, "seconds": line["seconds"]}
            elif line["failed"]:
                found["failed"].append(line["test"])
            reached += [(number, line["test"]) for number in line["reached"]]
    for path in log.glob("process-*.txt"):
        reached += [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    for number, test in reached:
        if test in found["tests"] and test not in (known := found["reached"].setdefault(str(number), [])):
            known.append(test)


def within_caps(number: int, tests: dict[str, float]) -> list[str]:
    """Return the tests that one mutant meets, the fastest first: all, or a seeded choice of them."""
    names = sorted(tests)
    random.Random(f"{SEED} {number}").shuffle(names)
    chosen: dict[str, float] = {}
    for name in names[:MOST_TESTS]:
        if not chosen or sum(chosen.values()) + tests[name] <= MOST_SECONDS:
            chosen[name] = tests[name]
    return sorted(chosen, key=lambda name: (chosen[name], name))


def kill_all(work: Path, tiers: list[Tier], mutants: list[Mutant], found: dict, seconds: float) -> dict:
    """Run each mutant that is not killed yet against its tests, tier after tier; return a row for each key.

    The slow tier meets the tests of the default one again if its options differ: laws may be tried harder.
    """
    log = work / "kills.jsonl"
    for each in tiers:
        rows = joined(log)
        plan = []
        for number, mutant in enumerate(mutants, 1):
            reaching = {
                test: found["tests"][test]["seconds"]
                for test in found["reached"].get(str(number), [])
                if found["tests"][test]["tier"] == each.name or (each is not tiers[0] and each.differs)
            }
            row = rows.get(mutant.key, {"killed_by": None, "met": {}})
            met = row["met"].get(each.name)
            chosen = within_caps(number, {test: reaching[test] for test in reaching.keys() - (met or ())})
            if not row["killed_by"] and (chosen or met is None):
                expected = sum(reaching[test] for test in chosen)
                plan.append({"id": mutant.key, "tier": each.name, "number": number, "reaching": len(reaching),
                             "tests": chosen, "expected": expected})  # fmt: skip
        plan.sort(key=lambda row: row["expected"])
        started = used_seconds()
        run_plan(work, each, plan, log, seconds - kill_seconds(work))
        append(work / "kill_seconds.jsonl", {"seconds": used_seconds() - started})
    return joined(log)


def run_plan(work: Path, tier: Tier, plan: list[dict], log: Path, seconds: float) -> None:
    files = sorted({test.split("::")[0] for row in plan for test in row["tests"]})
    with tempfile.TemporaryDirectory(dir=work, ignore_cleanup_errors=True) as directory:
        planned = Path(directory) / "plan.json"
        planned.write_text(
            json.dumps({"mutants": plan, "tier": tier.name, "log": str(log), "seconds": seconds}),
            encoding="utf-8",
        )
        if files:
            code = run_tests(work, tier, ["-m", "", *files], Path(directory), MUTANT_PLAN=str(planned))
            assert code == 0, f"pytest ended with {code}; see {work}/output.txt"
        else:
            for row in plan:
                append(log, {**row, "killed_by": None, "seconds": 0.0})


def kill_seconds(work: Path) -> float:
    return sum(row["seconds"] for row in read_rows(work / "kill_seconds.jsonl"))


def joined(log: Path) -> dict[str, dict]:
    """Return by key of the mutant who killed it, how many tests of each tier reach it, and which it met."""
    rows: dict[str, dict] = {}
    for line in read_rows(log):
        row = rows.setdefault(line["id"], {"killed_by": None, "reaching": {}, "met": {}})
        row["reaching"][line["tier"]] = line["reaching"]
        row["met"].setdefault(line["tier"], set()).update(line["tests"])
        if line["killed_by"]:
            row |= {"killed_by": line["killed_by"], "test": line["test"], "how": line["how"]}
    return rows


def append(path: Path, row: dict) -> None:
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps(row) + "\n")


# -- The result -----------------------------------------------------------------------------------


def used_seconds() -> float:
    """Return the machine time of all processes that were waited for, this one's too."""
    return sum(
        getattr(resource.getrusage(who), name)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        for name in ("ru_utime", "ru_stime")
    )


def read_rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open(encoding="utf-8")] if path.exists() else []


def share(part: list, whole: list) -> float | None:
    return round(len(part) / len(whole), 3) if whole else None


def summary(mutants: list[Mutant], rows: dict[str, dict], found: dict, tiers: list[Tier]) -> dict:
    """Return shares, survivors and caps from the outcome of each mutant by its key."""
    run = [mutant for mutant in mutants if mutant.key in rows]
    default = [mutant for mutant in run if rows[mutant.key]["killed_by"] == tiers[0].name]
    killed = [mutant for mutant in run if rows[mutant.key]["killed_by"]]
    survived = [mutant for mutant in run if mutant not in killed]
    reached = [mutant for mutant in run if any(rows[mutant.key]["reaching"].values())]
    assert len(reached) > len(run) / 2, "the suite hardly reaches the mutated code"

    def of(mutants: list[Mutant], package: str) -> list[Mutant]:
        return [mutant for mutant in mutants if mutant.package == package]

    def described(mutant: Mutant) -> dict:
        row = rows[mutant.key]
        place = f"{mutant.path}:{mutant.line}"
        operator = f"{mutant.operator} {mutant.variant}"
        return {"id": mutant.key, "place": place, "operator": operator, "statement": mutant.statement.removesuffix("\n    pass")[:100],
                "tests": sum(row["reaching"].values())}  # fmt: skip

    return {
        "sampled": len(mutants),
        "not_run": len(mutants) - len(run),
        "killed_by_the_whole_suite": share(killed, run),
        "killed_by_the_default_tier": share(default, run),
        "default_tier_of_the_whole_suite": share(default, killed),
        "packages": {
            package: {
                "sampled": len(of(mutants, package)),
                "run": len(of(run, package)),
                "reached": len(of(reached, package)),
                "killed_by_the_whole_suite": len(of(killed, package)),
                "killed_by_the_default_tier": len(of(default, package)),
            }
            for package in PACKAGES
        },
        "tests": {
            **Counter(test["tier"] for test in found["tests"].values()),
            "failed_without_mutant": sorted(found["failed"]),
            "not_run": [f"{name} {place}" for name, place in found["left"]],
        },
        "killed_how": dict(Counter(rows[mutant.key]["how"] for mutant in killed)),
        "survivors": [described(mutant) for mutant in survived],
        "killed_only_by_slow_tests": [described(mutant) for mutant in killed if mutant not in default],
        "survivors_capped": [
            mutant.key
            for mutant in survived
            if any(
                len(met) < rows[mutant.key]["reaching"][name] for name, met in rows[mutant.key]["met"].items()
            )
        ],
        "killed": {mutant.key: rows[mutant.key]["killed_by"] for mutant in killed},
    }


def compared(now: dict, before: Path) -> dict:
    """Return how the mutants fared that were sampled on both sides."""
    if not before.exists():
        return {}
    earlier = json.loads(before.read_text("utf-8"))

    def outcomes(result: dict) -> dict[str, bool]:
        """By the digest alone, since code may have moved to another package; not those that occur twice."""
        found = dict.fromkeys(result["killed"], True) | {row["id"]: False for row in result["survivors"]}
        times = Counter(key.rpartition("-")[2] for key in found)
        return {digest: at for key, at in found.items() if times[digest := key.rpartition("-")[2]] == 1}

    then, after = outcomes(earlier), outcomes(now)
    both = [key for key in after if key in then]
    return {
        "same_mutants_as_before": {
            "count": len(both),
            "killed_before": sum(then[key] for key in both),
            "killed_now": sum(after[key] for key in both),
            "no_longer_killed": [key for key in both if then[key] and not after[key]],
        }
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\nUsage")[0],
        epilog="Example: python benchmarks/mutants.py after --work ../mutants-work --slow HYPOTHESIS_PROFILE=ci",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("side", help="names the result: results/mutants-SIDE.json")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout to measure (default: this one)")
    parser.add_argument(
        "--work", type=Path, help="directory that keeps the copy and what was found, to go on later"
    )
    parser.add_argument("--tests", nargs="+", help="test paths (default: all, one directory after the other)")
    parser.add_argument("--one-tier", action="store_true", help="the default tier is the whole suite")
    parser.add_argument(
        "--default", default="", help="options and NAME=VALUE of the default tier, in one word"
    )
    parser.add_argument("--slow", default="", help="options and NAME=VALUE of the slow tier, in one word")
    parser.add_argument("--per-package", type=int, default=20, help="mutants of each package (default: 20)")
    parser.add_argument("--reach-minutes", type=float, default=40, help="machine time of reach (default: 40)")
    parser.add_argument("--kill-minutes", type=float, default=20, help="machine time of kill (default: 20)")
    return parser.parse_args()


def places_of(tree: Path) -> list[str]:
    """Return the directories and files of tests, those of the mutated packages first, the slowest last."""
    names = {
        path.name for path in (tree / "tests").iterdir() if path.is_dir() and any(path.rglob("test_*.py"))
    }
    names |= {path.name for path in (tree / "tests").glob("test_*.py")}
    order = [*PACKAGES, *sorted(names - {*PACKAGES, *LAST}), *LAST]
    return [f"tests/{name}" for name in order if name in names and f"tests/{name}" not in LEFT_OUT]


def main() -> None:
    import report

    wanted = arguments()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    default = tier("default", "" if wanted.one_tier else "not slow", wanted.default)
    tiers = [default] if wanted.one_tier else [default, tier("slow", "slow", wanted.slow)]
    with contextlib.ExitStack() as stack:
        work = (wanted.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))).resolve()
        for copied in ("tree", "plugin"):
            shutil.rmtree(work / copied, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        mutants = prepare(wanted.tree.resolve(), work, wanted.per_package)
        places = wanted.tests or places_of(wanted.tree)
        found = reach(work, tiers, places, 60 * wanted.reach_minutes)
        rows = kill_all(work, tiers, mutants, found, 60 * wanted.kill_minutes)
        seconds = found["seconds"] + kill_seconds(work)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=wanted.tree, capture_output=True, text=True, check=True
    )
    result = {"commit": commit.stdout.strip(), "seed": SEED, "machine_minutes": round(seconds / 60, 1)}
    result |= {"one_tier": wanted.one_tier, **summary(mutants, rows, found, tiers)}
    results = Path(__file__).parent / "results"
    result |= compared(result, results / "mutants-before.json") if wanted.side != "before" else {}
    report.write(str(Path(__file__).with_stem(f"mutants-{wanted.side}")), result)


if __name__ == "__main__":
    main()
