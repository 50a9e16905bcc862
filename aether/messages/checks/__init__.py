"""Checks: what each provider refuses, one module per provider, from its rules and its raw spelling alone.

Nothing here uses the groups or the readers of `aether.messages`, so that a check can find their mistakes.
"""
