"""Rules that act: what they stop, whatever the quoting, and that they stop nothing else."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.memory.enforcement import decide, reason
from aether.text.shell_syntax import MOST_DEPTH, Unreadable, commands
from aether.types import EnforcedRule


def rule(action="deny", **patterns):
    """Return a rule of a person."""
    empty = {"tool": "", "command": "", "regex": "", "path": ""}
    return EnforcedRule(
        id="rule_1", entry="wm_1", text="Never push.", said_at="2026-03-01T10:15:00Z", action=action, **{**empty, **patterns}
    )  # fmt: skip


PUSH = rule(command="git push*")


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "git  push origin main",
        "cd /src && git push",
        "ls; git push; ls",
        "true || git push",
        "ls | git push",
        "git push &",
        "(cd a; git push)",
        "{ git push; }",
        "if true; then git push; fi",
        "for i in 1 2; do git push; done",
        "while git fetch; do git push; done",
        "! git push",
        "A=1 B='x y' git push",
        "env -u X A=1 git push",
        "sudo -u me git push",
        "timeout -k 5 10 nice -n 3 git push",
        "nohup git push > /dev/null 2>&1 &",
        "/usr/bin/git push",
        "\\git push",
        "git pu''sh",
        'g"it" push',
        "'git' push",
        "git -C /src -c a=b --no-pager push",
        "git \\\n push",
        "echo $(git push)",
        'echo "a $(git push) b"',
        "echo `git push`",
        "diff <(git push) b",
        "cat <<EOF\n$(git push)\nEOF\n",
        "cat <<EOF | ls\ntext\nEOF\ngit push",
        "bash -lc 'cd a && git push'",
        "sh -c \"sh -c 'git push'\"",
        "eval git push",
        "xargs -n 1 git push",
        "find . -name x -exec git push {} ';'",
        "f() { git push; }; f",
        "[[ -f a ]] && git push",
        "exec 3>&1; git push",
        "time -p git push",
        "env -S 'git push'",
        "watch -n 5 git push",
        "parallel -j 2 git push ::: origin",
        "trap 'git push' EXIT",
        "git --attr-source HEAD push",
        "$(git push)",
        "$CMD x; git push",
        "git push; eval $LINE",
        "eval 'git push; $CMD'",
        "function f { git push; }; f",
        "coproc X { git push; }",
        "{fd}>/dev/null git push",
        "bash --norc -c 'git push'",
        "bash -c -- 'git push'",
        "bash -c -e 'git push'",
        "env --unset X git push",
        "env --split-string='git push'",
        "env -vS'git push'",
        "env -S 'git' push",
        "timeout --kill-after 5 5 git push",
        "sudo -iu bob git push",
        "sudo -D /tmp git push",
        "sudo -uroot git push",
        "su -c 'git push'",
        "flock -w 5 lock git push",
        "xargs --arg-file names git push",
        "xargs -i git push {}",
        "git-push origin",
        "cmd /c git push",
        "pwsh -Command git push",
        "xargs -I{} sh -c 'git push {}'",
        "find . -exec sh -c 'git push {}' ';'",
        "alias p='git push'; p",
        "alias g=git\ng push",
        "alias g=git p='g push'; A=1 p origin",
        "p() { git push; }; p",
        "script -qc 'git push' /dev/null",
        "strace -f git push",
        "uv run --with x git push",
        "npx git push",
        "git push $BRANCH",
        "bash -cl 'git push'",
        "bash -co pipefail 'git push'",
        "bash -c +x 'git push'",
        "bash -cx 'ls;git push'",
        "env - A=1 git push",
        "sudo -u me -s 'git push'",
        "watch -dn 1 git push",
        "watch --interval 1 'git push'",
        "npx -c 'git push'",
        "uv --quiet run git push",
        "python -u -m git push",
        "noglob git push",
        'git "pu\\\nsh"',
        'git $"push"',
    ],
)
def test_a_command_is_stopped_however_it_is_written(line):
    assert decide([PUSH], "Bash", {"command": line}, "/src").action == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "git pull",
        "echo 'git push'",
        "echo git push",
        "git commit -m 'do not git push; ever (really)'",
        "# git push",
        "ls # git push",
        "cat <<'EOF'\n$(git push)\nEOF\n",
        "grep -r 'git push' .",
        "git pull $BRANCH",
        "echo $((1 + 2)) ${HOME}",
        "",
        "printf 'a\\nb'",
        "case_study --run",
        "[ -f *.md ] && ls *.py {a,b}.txt",
        "git stash show stash@{0} && cp a.{txt,md} ${HOME}",
        "trap - EXIT",
        "watch",
        "env -S 'git pull' ls",
        "ls | xargs git add",
        "ls | xargs",
        "ls *.py | xargs -n1 grep 'git push'",
        "bash run.sh 'git push'",
        "sudo --preserve-env ls",
        "git add *.py && git log -p && rm *",
        "git --no-pager log",
        "function f { ls; }; f",
        "source .venv/bin/activate && . ./env.sh",
        "find . -name '*.py' -exec grep -n 'git push' {} +",
        "bash build.sh --fast",
        "sudo ls",
        "alias p='git pull'; p",
        "alias",
        "uv pip install git push",
        "python -c 'print(1)' -m git push",
        "git config user.name push",
        "git lfs push",
    ],
)
def test_what_only_mentions_it_is_not(line):
    assert decide([PUSH], "Bash", {"command": line}, "/src") is None


@pytest.mark.parametrize(
    "line",
    [
        "$GIT push",
        "git $VERB",
        "{git,push}",
        "gi? push",
        "git {push,}",
        "git ${VERB}sh",
        "`which git` push",
        "eval $LINE",
        'bash -c "$LINE"',
        "echo 'open",
        'echo "open',
        "echo $(git pull",
        "echo `git pull",
        "cat <<EOF\nno end",
        "case x in a) ls;; esac",
        "echo $'\\x67it'",
        "echo $(($(git pull)))",
        "a(b)",
        "ls >",
        "echo a)",
        "bash <<'EOF'\ngit push\nEOF\n",
        "sudo bash -s <<EOF\ngit push\nEOF\n",
        "cat <<EOF | bash\ngit push\nEOF\n",
        'bash <<< "git push"',
        "printf 'git push' | sh",
        "echo push | xargs git",
        "xargs -I{} sh -c {}",
        "echo git push | xargs env",
        "source <(echo git push)",
        ". /dev/stdin <<< 'git push'",
        "bash <(echo git push)",
        "echo git push | su",
        "sudo -i",
        "sudo -s <<< 'git push'",
        "echo 'git push' | xargs sh",
        "find . -name x -exec sh -c {} ';'",
        "git pus[h]",
        "git p?sh",
        "git --shallow-file x push",
        "git -c alias.p=push p",
        "git config alias.p push; git p",
        "p='git push'; $p",
        "p=push; git $p",
        "p() { git $1; }; p push",
        'alias p="$LINE"; p',
        "echo git push | su bob",
        "bash -s x <<< 'git push'",
        "bash -o errexit <<'EOF'\ngit push\nEOF\n",
        "echo git push | bash -o pipefail",
        "echo git push | bash /dev/fd/0",
        "echo git push | sh /proc/self/fd/0",
        "echo push | xargs -I X git X",
        "echo push | xargs -I% sh -c 'git %'",
        "echo git | xargs -I{} sh -c '{} push'",
        "git --config-env=alias.p=P p",
        "git -c ALIAS.p=push p",
        "git config Alias.p push; git p",
        "git -c include.path=/tmp/aliases p",
        "sudo --a env --b " * 200 + "true",
        "find . -exec find . " * 2_000,
        "sudo " * 2_000 + "true",
        "alias " + " ".join(f"a{nth}='a{nth + 1}; a{nth + 1}'" for nth in range(40)) + "; a0",
        "$(" * (MOST_DEPTH + 2) + ")" * (MOST_DEPTH + 2),
    ],
)
def test_what_cannot_be_known_is_asked_about(line):
    decision = decide([PUSH], "Bash", {"command": line}, "/src")

    assert decision.action == "ask"
    assert decision.doubt in reason(decision)
    assert decide([rule(command="rm -rf")], "Read", {"command": line}, "/src") is None


@given(
    st.lists(
        st.sampled_from(["git", "push", "-x", "a b", "it's", '"', "$A", "#", ";", "\\", "", "é"]), min_size=1
    )
)
def test_quoted_words_come_back(words):
    words = ["run", *words]

    assert commands(shlex.join(words)) == [words]


@given(st.text(alphabet="git push$(){}'\"`\\;&|<>\n#=-ab ", max_size=60))
def test_any_text_is_read_or_refused(line):
    try:
        simple = commands(line)
    except Unreadable:
        simple = [["unreadable"]]

    assert all(simple)


@given(st.text(alphabet="git push;&\n'\" ", max_size=30))
def test_a_command_after_a_line_that_can_be_read_is_stopped(line):
    whole = f"{line}\ngit push"
    decision = decide([PUSH], "Bash", {"command": whole}, "/src")

    assert decision is not None


@pytest.mark.parametrize(
    ("patterns", "tool", "arguments", "stops"),
    [
        ({"command": "git push"}, "Bash", {"command": "git push origin"}, True),
        ({"command": "git push"}, "Bash", {"command": "git pushx"}, False),
        ({"command": "sudo"}, "Bash", {"command": "A=1 sudo -u me ls"}, True),
        ({"command": "xargs rm"}, "Bash", {"command": "ls | xargs rm"}, True),
        ({"command": "./deploy.sh"}, "Bash", {"command": "cd a; ./deploy.sh now"}, True),
        ({"command": "./deploy.sh"}, "Bash", {"command": "bash -eo pipefail scripts/deploy.sh"}, True),
        ({"command": "./deploy.sh"}, "Bash", {"command": ". deploy.sh"}, True),
        ({"command": "./deploy.sh"}, "Bash", {"command": "cat deploy.sh"}, False),
        ({"command": "alembic upgrade"}, "Bash", {"command": "python3.12 -m alembic upgrade head"}, True),
        ({"command": "alembic upgrade"}, "Bash", {"command": "python3.12 -m alembic current"}, False),
        ({"command": "git push*--force*"}, "Bash", {"command": "git push origin $FLAGS"}, True),
        ({"command": "git push*--force*"}, "Bash", {"command": "git pull origin $FLAGS"}, False),
        ({"command": "rm -rf *"}, "Bash", {"command": "rm -rf build"}, True),
        ({"command": "git push"}, "PowerShell", {"command": "git push"}, True),
        ({"command": "git push"}, "Write", {"file_path": "git push"}, False),
        ({"regex": r"DROP\s+TABLE"}, "Bash", {"command": "psql -c 'DROP  TABLE a'"}, True),
        ({"regex": r"DROP\s+TABLE"}, "Bash", {"command": "psql -l"}, False),
        ({"regex": "x"}, "Bash", {"command": 7}, False),
        ({"path": "migrations/**"}, "Edit", {"file_path": "/src/migrations/1.sql"}, True),
        ({"path": "migrations/**"}, "Write", {"file_path": "migrations/1.sql"}, True),
        ({"path": "migrations/**"}, "Edit", {"file_path": "/src/app.py"}, False),
        ({"path": "migrations/**"}, "Read", {"file_path": "/src/migrations/1.sql"}, False),
        ({"tool": "mcp__db__*"}, "mcp__db__drop", {}, True),
        ({"tool": "mcp__db__*"}, "mcp__web__get", {}, False),
        ({"tool": "shell", "command": "git push"}, "shell", {"command": "git push"}, True),
    ],
)
def test_each_kind_of_rule_stops_its_calls_alone(patterns, tool, arguments, stops):
    assert (decide([rule(**patterns)], tool, arguments, "/src") is not None) == stops


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("git p", "deny"),
        ("git P origin", "deny"),
        ("git -C lib both", "deny"),
        ("git shell", "deny"),
        ("git computed", "ask"),
        ("git again", "deny"),
        ("git run push", "deny"),
        ("git loop", None),
        ("git l", None),
        ("git other", None),
    ],
)
def test_an_alias_of_git_is_read_as_its_command(line, action):
    aliases = {
        "p": "push",
        "both": "!git fetch && git push",
        "shell": "!sh -c 'git push'",
        "computed": "!$X",
        "again": "p",
        "run": "!sudo git",
        "loop": "!git loop; git round",
        "round": "loop",
        "l": "log",
    }

    decision = decide([PUSH], "Bash", {"command": line}, "/src", {"/src": aliases}.__getitem__)

    assert (decision and decision.action) == action


def test_aliases_are_read_up_to_a_number_of_words():
    read = []

    def aliases(directory):
        read.append(directory)
        return {"long": f"log {'--x ' * 3_000}", "b": "!git c; git c", "c": "!git d; git d", "d": "log"}

    assert decide([PUSH], "Bash", {"command": "git long;" * 5_000}, "/src", aliases).action == "ask"
    assert len(read) < 20
    assert decide([PUSH], "Bash", {"command": "git b"}, "/src", aliases) is None


def test_git_is_not_asked_for_a_verb_of_its_own():
    def fail(directory):
        raise AssertionError(directory)

    assert decide([PUSH], "Bash", {"command": "git status && git commit -m x; ls"}, "/src", fail) is None


@pytest.mark.parametrize("ignores", [True, False])
def test_capitals_start_the_same_program_where_files_have_no_case(ignores, monkeypatch):
    monkeypatch.setattr("aether.text.shell_syntax.IGNORES_CASE", ignores)

    assert bool(decide([PUSH], "Bash", {"command": "Sudo /usr/bin/GIT push"}, "/src")) == ignores
    assert decide([PUSH], "Bash", {"command": "git PUSH"}, "/src") is None
    assert decide([rule(command="Rscript x")], "Bash", {"command": "Rscript x"}, "/src")


def test_denying_comes_before_asking_and_the_person_is_quoted():
    decision = decide([rule("ask", command="git"), PUSH], "Bash", {"command": "git push"}, "/src")

    assert decision.action == "deny"
    assert "Never push." in reason(decision)
    assert "2026-03-01" in reason(decision)
    assert "aether rule relax rule_1" in reason(decision)
