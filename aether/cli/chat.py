"""A chat on the command line: at a terminal with a status line, in a pipe lines in and answers out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import click

from aether.cli.complete import completes, conversation_names
from aether.cli.output import Ask, Command, bar, cut_to, emit, note, one_line, pass_ask, plain, read_text, say
from aether.text.words import pluralize

if TYPE_CHECKING:
    from aether.api.chat import Chat, Turn
    from aether.api.context import ContextStatus

PROMPT = "> "
# Messages that /history shows without a number.
SHOWN_MESSAGES = 10
# Of a goal in the status line.
GOAL_COLUMNS = 40
HELP = """\
/compact              compress older messages into a checkpoint now
/goal [TEXT]          show the goal, or set one
/mode [NAME]          show or change the mode: developer, planning, assistant, debugger, user
/model [NAME [SIZE]]  show or change the model, and its window in tokens
/snapshot             save the context as it is
/rollback [ID]        go back to a snapshot, by default the newest
/history [N]          show the newest N messages of the whole history
/export [FILE]        write the history as Markdown, or as JSON if the name ends in .json
/retry                ask for another answer to the last message
/status               show tokens, tier, checkpoints and goal
/help                 show this
/quit                 leave; the conversation is kept
A message that starts with a slash: write two."""


@dataclass
class Say:
    """How a chat shows what happens."""

    ask: Ask
    terminal: bool
    leaving: bool = False
    """Whether the next Ctrl-C leaves the chat."""

    def text(self, piece: str) -> None:
        """Show a piece of a reply."""
        if not self.ask.json:
            sys.stdout.write(plain(piece))
            sys.stdout.flush()

    def line(self, text: str) -> None:
        """Show words about the chat: not part of any answer."""
        for part in text.split("\n"):
            note(self.ask, plain(part))


class Quit(Exception):
    """The user left the chat."""


@click.command("chat", cls=Command)
@click.argument("conversation", required=False, shell_complete=completes(conversation_names))
@click.option(
    "--backend", metavar="NAME",
    help="Who answers: echo, ollama, openai, anthropic or command:'PROGRAM'  [default: chat.backend, else echo]",
)  # fmt: skip
@click.option("--model", help="The model of that backend  [default: chat.model, else AETHER_MODEL]")
@click.option("--window", type=click.IntRange(min=1), help="Its window in tokens  [default: from the server, else from the model]")  # fmt: skip
@click.option("--mode", default="assistant", help="The mode: developer, planning, assistant, debugger or user")  # fmt: skip
@click.option(
    "--system", metavar="FILE", help="Take the system prompt from this file, or - for standard input"
)
@click.option("--message", "messages", multiple=True, metavar="TEXT", help="Send this and print the answer, instead of reading lines; may be repeated")  # fmt: skip
@pass_ask
def chat_command(
    ask: Ask, /, conversation: str | None, messages: tuple[str, ...], system: str | None, **chosen: Any
) -> int:
    """Talk with a model for as long as you like, in any window.

    Older messages become checkpoints when the window fills; nothing is lost, and CONVERSATION resumes a talk by its name.
    The backend echo needs no model and no network. In a pipe each line is a message, and answers go to standard output.
    /help lists the commands of a chat. Ctrl-C ends a reply; twice, the chat.

    \b
    Example:
      aether chat --backend echo --message "The port is 8080."
      aether chat --message "Where were we?" --window 4096 planning-talk
    """
    from aether.api import chat
    from aether.clock import short_id

    show = Say(ask, sys.stdin.isatty() and sys.stdout.isatty() and not messages and not ask.json)
    name = conversation or short_id("chat")
    prompt = read_text(system) if system else ""
    opened = chat.open_chat(name, system=prompt, tools=[_recall(ask, name)], home=ask.home, **chosen)
    show.line(
        f"Conversation {name}, {_backend(opened)}. {'/help lists the commands.' if show.terminal else ''}".rstrip()
    )
    if chosen["window"]:
        _note_window(show, opened, chosen["window"])
    lines: Iterator[str] = iter(messages)
    if not messages:
        lines = _typed(show, lambda: opened) if show.terminal else _piped()
    turns: list[Turn] = []
    try:
        code = _talk(show, opened, lines, turns)
    except KeyboardInterrupt:  # between two lines
        if not show.terminal:
            raise
        code = 0
    if ask.json:
        emit(ask, _as_data(opened, turns), "")
    note(ask, f"To continue: aether chat {name}")
    return code


def _recall(ask: Ask, name: str) -> Any:
    from aether.api.chat import Tool
    from aether.frameworks.recall_tool import recall_tool

    tool = recall_tool("openai", name, home=ask.home)
    return Tool(tool.definition, tool.run)


def _backend(opened: Chat) -> str:
    model = opened.settings.model
    return f"{opened.backend.NAME} {model}".strip() + (" (no model: it repeats what you say)" if opened.backend.NAME == "echo" else "")  # fmt: skip


def _note_window(show: Say, opened: Chat, requested: int) -> None:
    from aether.api.context import context_status

    window = context_status(opened.conversation, home=opened.home).settings.window
    if window < requested:
        show.line(f"The server has a window of {window:,} tokens, not {requested:,}.")


def _piped() -> Iterator[str]:
    for line in sys.stdin:
        yield line.rstrip("\r\n")


def _typed(show: Say, opened: Callable[[], Chat]) -> Iterator[str]:
    """Yield what a person types, below a line of status; Ctrl-C twice, or Ctrl-D, ends it."""
    with suppress(ImportError):
        import readline  # noqa: F401 - it gives `input` editing and a history

    while True:
        try:
            say(cut_to(status_line(opened()), _columns()))
            line = input(PROMPT)
        except KeyboardInterrupt:
            say("")
            if show.leaving:
                return
            show.leaving = True
            show.line("Ctrl-C again leaves the chat.")
            continue
        except EOFError:
            say("")
            return
        show.leaving = False
        yield line


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns - 1


def _talk(show: Say, opened: Chat, lines: Iterator[str], turns: list[Turn]) -> int:
    """Answer each line until there are none, and return the exit code of the last failure."""
    from aether.errors import AetherError

    code = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            opened = _done(show, opened, line.strip(), turns)
        except Quit:
            break
        except KeyboardInterrupt:
            if not show.terminal:
                raise
            show.leaving = True
            show.line("Interrupted. What was said is kept. Ctrl-C again leaves the chat.")
        except AetherError as reason:
            code = reason.exit_code
            say(plain(f"Error: {_without_extractive(str(reason))}"))
            if show.terminal and not line.strip().startswith("/"):
                show.line("Your message is kept: /retry asks again.")
    return code


def _without_extractive(text: str) -> str:
    """Return the words of an error without the advice that is about summaries."""
    return text.replace(", or use the extractive backend", "").replace(" or use the extractive backend", "")


def _done(show: Say, opened: Chat, line: str, turns: list[Turn]) -> Chat:
    """Carry out a command, or say a message; return the chat as it goes on."""
    from aether.api import chat

    if line.startswith("/") and not line.startswith("//"):
        word, _, argument = line[1:].partition(" ")
        if word == "retry":
            turns.append(_shown(show, partial(chat.answer_again, opened)))
            return opened
        return _command(show, opened, word, argument.strip())
    text = line.removeprefix("/") if line.startswith("//") else line
    turns.append(_shown(show, partial(chat.say, opened, text)))
    return opened


def _shown(show: Say, turn: Callable[..., Turn]) -> Turn:
    """Show a turn while it happens, and what else came of it."""
    open_line = False

    def on_text(piece: str) -> None:
        nonlocal open_line
        open_line = True
        show.text(piece)

    def end_line() -> None:
        nonlocal open_line
        if open_line and not show.ask.json:
            sys.stdout.write("\n")
            sys.stdout.flush()
        open_line = False

    try:
        with bar(show.ask, "Compressing context…") as progress:

            def on_progress(stage: str, percent: int, _message: str) -> None:
                end_line()
                progress(percent, stage)

            finished = turn(on_text=on_text, progress=on_progress)
    finally:
        end_line()
    _report(show, finished)
    return finished


def _report(show: Say, finished: Turn) -> None:
    """Say what else came of a turn."""
    if finished.interrupted:
        show.leaving = True
        show.line("The reply was ended; what came of it is kept. Ctrl-C again leaves the chat.")
    elif not finished.text.strip():
        show.line("The reply was empty.")
    elif finished.replies and finished.replies[-1].stop == "length":
        show.line("The reply was cut off at the longest that was asked for.")
    for compression in finished.compressed:
        show.line(_completion(compression))
    if finished.overflows:
        show.line("The server refused the prompt as too long; the context was made smaller, and asked again.")
    if finished.read_tokens:
        window = f"{finished.read_tokens:,} tokens"
        show.line(
            f"The server cut the prompt and read only {window}; the context is fitted to that from now on. /retry asks again."
        )
    if finished.applied.total:
        show.line(f"Goal: {finished.applied.total} markers of the reply are recorded.")
    for goal in finished.applied.proposed:
        show.line(f"The model proposes a goal: {one_line(goal)}   /goal {one_line(goal)}")


def _completion(compression: Any) -> str:
    from aether.conversation.shapes import LEVEL_NAMES

    first, last = compression.message_range
    about = f", checkpoint {compression.checkpoint} ({LEVEL_NAMES.get(compression.level, compression.level)}), messages {first}-{last}" if compression.checkpoint else ""  # fmt: skip
    return f"Compressed: {compression.tokens_before:,} -> {compression.tokens_after:,} tokens{about}."


def _command(show: Say, opened: Chat, word: str, argument: str) -> Chat:
    from aether.api import chat, context
    from aether.api.context_steps import compress_context

    name, home = opened.conversation, opened.home
    if word in ("quit", "exit"):
        raise Quit
    if word == "compact":
        before = len(_compactions(opened))
        with bar(show.ask, "Compressing context…") as progress:
            compressed = compress_context(
                name, progress=lambda stage, percent, _: progress(percent, stage), home=home
            )
        for compression in chat.compressions_since(opened, before):
            show.line(_completion(compression))
        if not compressed.success:
            show.line(f"Nothing was compressed: {compressed.reason}. {compressed.error}".rstrip())
    elif word == "mode":
        status = (
            context.set_mode(name, argument, home=home)
            if argument
            else context.context_status(name, home=home)
        )
        show.line(f"Mode {status.settings.mode}.")
    elif word == "model":
        return _model(show, opened, argument)
    elif word == "snapshot":
        saved = context.take_snapshot(name, purpose="rollback", home=home)
        show.line(f"Snapshot {saved.id}: {saved.tokens:,} tokens.   /rollback {saved.id}")
    elif word == "rollback":
        status = context.restore_context(name, argument or None, home=home)
        show.line(f"Restored: {status.tokens:,} tokens. What was said since is in /history.")
    elif word in _SHOWING:
        _SHOWING[word](show, opened, argument)
    else:
        from difflib import get_close_matches

        near = get_close_matches(
            word, [*_SHOWING, "compact", "mode", "model", "snapshot", "rollback", "retry", "quit"], 1
        )
        show.line(
            f"There is no command /{word}.{f' Did you mean /{near[0]}?' if near else ''} /help lists them."
        )
    return opened


def _model(show: Say, opened: Chat, argument: str) -> Chat:
    from aether.api import chat, context
    from aether.errors import InvalidInput

    model, _, size = argument.partition(" ")
    if size and not size.strip().isdecimal():
        raise InvalidInput(
            f"{size!r} is not a number of tokens.", fix="Write /model NAME 8192.", where="/model"
        )
    if model:
        opened = chat.with_model(opened, model, window=int(size) if size else None)
    status = context.context_status(opened.conversation, home=opened.home)
    show.line(
        f"Model {status.settings.model or '(none)'}, window {status.settings.window:,} tokens, tier {status.tier.label}."
    )
    return opened


def _compactions(opened: Chat) -> list[Any]:
    from aether.api.conversations import record_directory
    from aether.store.conversations import load

    return load(record_directory(opened.home), opened.conversation).compactions


def _goal(show: Say, opened: Chat, argument: str) -> None:
    from aether.api import goals

    goal = goals.add_goal(argument, home=opened.home) if argument else goals.current_goal(home=opened.home)
    show.line(f"Goal: {goal['description']}" if goal else "No goal. /goal TEXT sets one.")


def _history(show: Say, opened: Chat, argument: str) -> None:
    from aether.api.conversations import full_history
    from aether.messages.model import content_text

    messages = full_history(opened.conversation, home=opened.home)
    count = int(argument) if argument.isdecimal() else SHOWN_MESSAGES
    first = max(0, len(messages) - count)
    for nth, message in enumerate(messages[first:], first + 1):
        text = content_text(message.get("content")) or ", ".join(call["function"]["name"] for call in message.get("tool_calls") or [])  # fmt: skip
        show.line(cut_to(f"[{nth}] {message.get('role', '')}: {one_line(text)}", _columns()) if show.terminal else f"[{nth}] {message.get('role', '')}: {one_line(text)}")  # fmt: skip


def _export(show: Say, opened: Chat, argument: str) -> None:
    from aether.api.context import export_history
    from aether.cli.output import write_file

    path = argument or f"{opened.conversation}.md"
    form: Literal["json", "markdown"] = "json" if path.endswith(".json") else "markdown"
    write_file(
        path, export_history(opened.conversation, format=form, home=opened.home).encode("utf-8", "replace")
    )
    show.line(f"Written to {path}.")


_SHOWING: dict[str, Callable[[Say, Chat, str], None]] = {
    "help": lambda show, _chat, _rest: show.line(HELP),
    "status": lambda show, opened, _rest: show.line(status_line(opened)),
    "goal": _goal,
    "history": _history,
    "export": _export,
}


def status_line(opened: Chat) -> str:
    """Return one line about the context: tokens, tier, checkpoints, goal."""
    from aether.api.context import context_status

    status = context_status(opened.conversation, home=opened.home)
    share = round(100 * status.tokens / status.limit)
    goal = _current_goal(opened)
    parts = [
        f"{status.tokens:,} of {status.limit:,} tokens ({share} %)", f"tier {status.tier.label}",
        pluralize(status.checkpoints, "checkpoints"), f"mode {status.settings.mode}",
        *([f"goal: {cut_to(one_line(goal), GOAL_COLUMNS)}"] if goal else []),
    ]  # fmt: skip
    return " | ".join(parts)


def _current_goal(opened: Chat) -> str:
    from aether.api.goals import current_goal
    from aether.errors import AetherError

    try:
        goal = current_goal(home=opened.home)
    except AetherError:  # without a home there are no goals
        return ""
    return str(goal["description"]) if goal else ""


def _as_data(opened: Chat, turns: list[Turn]) -> dict[str, Any]:
    from aether.api.context import context_status

    status: ContextStatus = context_status(opened.conversation, home=opened.home)
    return {
        "conversation": opened.conversation, "backend": opened.backend.NAME, "model": status.settings.model,
        "tokens": status.tokens, "limit": status.limit, "tier": status.tier.label, "checkpoints": status.checkpoints,
        "goal": _current_goal(opened),
        "turns": [
            {
                "text": turn.text, "interrupted": turn.interrupted, "overflows": turn.overflows, "read_tokens": turn.read_tokens,
                "input_tokens": sum(reply.input_tokens for reply in turn.replies),
                "output_tokens": sum(reply.output_tokens for reply in turn.replies),
                "calls": [call.name for reply in turn.replies for call in reply.calls],
                "compressed": turn.compressed,
            }
            for turn in turns
        ],
    }  # fmt: skip
