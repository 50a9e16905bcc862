"""Installing in Claude Code, as `aether claude install` and `aether claude uninstall` do."""

from aether.hosts import installing, settings
from aether.hosts.claude_code.install import claude_directory, edits


def install(scope="project", *, project=None, dry_run=False):
    return installing.install("claude-code", scope, project=project, dry_run=dry_run).files


def uninstall(scope="project", *, project=None, dry_run=False):
    return settings.uninstall(edits(scope, project), claude_directory(), dry_run=dry_run)
